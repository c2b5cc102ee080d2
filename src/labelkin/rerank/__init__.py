"""From all that speaks for a heading to one calibrated score: the method `rerank`."""
