"""The method `rerank`: one calibrated score from all signals."""
