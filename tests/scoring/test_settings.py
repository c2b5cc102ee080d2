from __future__ import annotations

from labelkin.scoring.settings import RERANK_DEPTH, Settings


def test_the_reranker_hears_many() -> None:
    assert Settings(method="rerank").changed(k=5).k == RERANK_DEPTH


def test_targets_of_the_reranker() -> None:
    usual = Settings(method="rerank")
    changed = usual.changed(accept=0.8, review=0.3)
    assert (changed.rerank.accept, changed.rerank.review) == (0.8, 0.3)
    assert usual.changed(review=0.3).rerank.accept == usual.rerank.accept
    assert usual.changed(threshold=0.2).rerank.threshold == 0.2
    assert usual.changed(limit=3).rerank.threshold == 0
