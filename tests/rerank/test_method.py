from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_documents
from labelkin.evaluate import evaluate, parse_measure
from labelkin.exceptions import ModelMismatchError
from labelkin.rerank.open import reranker_folder
from labelkin.scoring.settings import Settings

from .rerank_data import made

RERANK = Settings(method="rerank")
MIF = parse_measure("MiF")


def ranked(indexer: Indexer, documents, **changes) -> list[dict[int, float]]:
    wanted = RERANK.changed(threshold=0.05, **changes)
    return [
        dict(zip(columns.tolist(), scores.tolist(), strict=True))
        for columns, scores in indexer.labels(documents, wanted)
    ]


def test_better_than_votes(indexer, fresh):
    votes, reranked = (
        evaluate(indexer.evaluate(fresh, settings=Settings(method=name)), [MIF])["MiF"]
        for name in ("knn", "rerank")
    )
    assert reranked > votes + 0.08


def test_batches_give_the_same_as_one_by_one(indexer, fresh, monkeypatch):
    documents = [*fresh[:20], Document("e", "", "", language="en")]
    alone = [ranked(indexer, [document])[0] for document in documents]
    monkeypatch.setattr("labelkin.rerank.method._BATCH", 8)
    together = ranked(indexer, documents)
    assert [{*one} for one in together] == [{*one} for one in alone]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other)
    suggested = indexer.suggest(documents, settings=RERANK)
    assert [len(one) for one in suggested] == [
        len(indexer.suggest([document], settings=RERANK)[0]) for document in documents
    ]


def test_nothing_to_go_by(indexer):
    assert indexer.suggest([], settings=RERANK) == []
    assert len(indexer.labels([], RERANK)) == 0
    strange = Document("s", "Xyzzy qwrtp", "Plugh.", language="en")
    assert len(indexer.suggest([strange, Document("e", "")], settings=RERANK)) == 2


def test_signals_add_up_to_the_log_odds(indexer, fresh):
    method = indexer.method(RERANK)
    queries = indexer.queries(fresh[:3], RERANK.k)
    given = method.cut(queries, method.rank(queries))
    candidates = method._candidates(queries)
    for place, suggestions in enumerate(method.suggestions(queries, given)):
        keys = place * candidates.pairs.width + given[place][0].astype(np.int64)
        lines = np.searchsorted(candidates.pairs.keys, keys)
        raw = method.model.ranker.scores(candidates.features[lines])
        sums = [sum(signal.weight for signal in one.signals) for one in suggestions]
        np.testing.assert_allclose(sums, np.log(raw / (1 - raw)), atol=1e-6)
        weights = [[signal.weight for signal in one.signals] for one in suggestions]
        assert weights == [sorted(one, reverse=True) for one in weights]


def test_bands(indexer):
    method = indexer.method(RERANK)
    calibration = method.model.info.calibration
    accept, review = calibration.threshold(0.9), calibration.threshold(0.5)
    assert review <= accept
    assert method.band(accept) == "accept"
    assert method.band(review - 0.01) == "hidden"
    if review < accept:
        assert method.band(accept - 0.005) == "review"


def test_excluded_headings_are_left_out_and_change_no_other_score(indexer, fresh):
    before = ranked(indexer, fresh[:5])
    column = max(before[0], key=before[0].__getitem__)
    name = indexer.vocabulary[column].id
    after = ranked(indexer, fresh[:5], exclude=(name,))
    for one, other in zip(before, after, strict=True):
        assert other == {label: score for label, score in one.items() if label != column}
    only = ranked(indexer, fresh[:5], include=(name,))
    assert only[0] == {column: before[0][column]}


def test_deprecated_headings_are_not_suggested(indexer, fresh):
    deprecated = {n for n, concept in enumerate(indexer.vocabulary) if concept.deprecated}
    assert deprecated
    assert not deprecated & {label for one in ranked(indexer, fresh) for label in one}


def test_documents_and_headings_that_came_later(own, fresh):
    text = fresh[0]
    new = [replace(text, id=f"n{n}", labels=("Brand New Heading",)) for n in range(6)]
    before = ranked(own, [text])[0]
    width = own.collection.generation().next_column
    assert own.add(new, keep_unknown=True)
    after = ranked(own, [text])[0]
    assert own.collection.generation().next_column == width + 1
    assert after != before
    votes = own.method(RERANK)._candidates(own.queries([text], RERANK.k))
    assert width in votes.pairs.columns.tolist()


def test_a_reranker_of_another_collection_is_refused(own, tmp_path):
    with made(tmp_path / "other", demo_documents(30, 0)) as other:
        shutil.copytree(reranker_folder(own.collection), reranker_folder(other.collection))
        with pytest.raises(ModelMismatchError) as caught:
            other.suggest([Document("q", "Wheat")], settings=RERANK)
    assert "\n" not in str(caught.value)


def test_prediction_needs_no_training_libraries(learned):
    code = (
        "import sys\n"
        "for name in ('torch', 'sklearn', 'matplotlib'): sys.modules[name] = None\n"
        "from labelkin import Document, Indexer\n"
        "from labelkin.scoring.settings import Settings\n"
        "with Indexer.open(sys.argv[1]) as indexer:\n"
        "    text = Document('q', 'Wheat in the fields of Ellmark', language='en')\n"
        "    (found,) = indexer.suggest([text], settings=Settings(method='rerank'))\n"
        "    print(len(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(learned)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
