from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import weakref
from dataclasses import replace

import numpy as np
import pytest

from labelkin import Document, Indexer, TrainingSettings
from labelkin.demo import demo_documents
from labelkin.evaluate import evaluate, parse_measure
from labelkin.exceptions import ModelMismatchError
from labelkin.rerank.method import Rerank, _candidates
from labelkin.rerank.model import RerankModel
from labelkin.rerank.signals import votes
from labelkin.scoring.settings import RERANK_DEPTH, Settings
from labelkin.store.config import update_config

from .rerank_data import QUICK, made

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
    assert [[one.concept.id for one in suggestions] for suggestions in suggested] == [
        [one.concept.id for one in indexer.suggest([document], settings=RERANK)[0]]
        for document in documents
    ]


def test_only_candidates_are_kept_with_the_queries(indexer, fresh, monkeypatch):
    monkeypatch.setattr("labelkin.rerank.method._BATCH", 20)
    counted = []
    usual = votes.count_votes

    def count_votes(*arguments):
        found = usual(*arguments)
        counted.append(weakref.ref(found))
        return found

    monkeypatch.setattr(votes, "count_votes", count_votes)
    settings = Settings(method="rerank")
    queries = indexer.queries(fresh, RERANK_DEPTH)
    Rerank().rank(queries, settings)
    gc.collect()
    assert [one() for one in counted] == [None] * 3
    # Candidates are there for explanations.
    Rerank().rank(queries, settings)
    assert len(counted) == 3


def test_nothing_to_go_by(indexer):
    assert indexer.suggest([], settings=RERANK) == []
    assert len(indexer.labels([], RERANK)) == 0
    strange = Document("s", "Xyzzy qwrtp", "Plugh.", language="en")
    assert len(indexer.suggest([strange, Document("e", "")], settings=RERANK)) == 2


def test_signals_add_up_to_the_log_odds(indexer, fresh):
    method = Rerank()
    queries = indexer.queries(fresh[:3], RERANK.k)
    given = method.cut(queries, method.rank(queries, RERANK), RERANK)
    candidates = _candidates(queries, RERANK)
    ranker = indexer.runtime.models.get(RerankModel).ranker
    assert len(given.columns)
    for place, suggestions in enumerate(method.explain(queries, given, RERANK, signals=True)):
        keys = place * candidates.pairs.width + given[place][0].astype(np.int64)
        lines = np.searchsorted(candidates.pairs.keys, keys)
        raw = ranker.scores(candidates.features[lines])
        sums = [sum(signal.weight for signal in one.signals) for one in suggestions]
        np.testing.assert_allclose(sums, np.log(raw / (1 - raw)), atol=1e-6)
        weights = [[signal.weight for signal in one.signals] for one in suggestions]
        assert weights == [sorted(one, reverse=True) for one in weights]


def test_signals_only_if_asked_for(indexer, fresh):
    plain, explained = (
        indexer.suggest(fresh[:3], settings=RERANK, explain=explain) for explain in (False, True)
    )
    assert all(one.signals == () for suggestions in plain for one in suggestions)
    assert all(one.signals for suggestions in explained for one in suggestions)
    assert plain == [[replace(s, signals=()) for s in suggestions] for suggestions in explained]


def test_bands(indexer):
    band = Rerank().bands(indexer.queries([]), RERANK)
    calibration = indexer.runtime.models.get(RerankModel).info.calibration
    accept, review = calibration.threshold(0.9), calibration.threshold(0.5)
    assert review <= accept
    assert band(accept) == "accept"
    assert band(review - 0.01) == "hidden"
    if review < accept:
        assert band(accept - 0.005) == "review"


def test_a_request_keeps_the_model_that_it_began_with(own, fresh):
    queries = own.queries(fresh[:3], RERANK.k)
    method = Rerank()
    given = method.cut(queries, method.rank(queries, RERANK), RERANK)
    expected = method.explain(queries, given, RERANK, signals=True)
    own.train_reranker(settings=replace(QUICK, rounds=3, groups=("votes", "named")))
    assert method.explain(queries, given, RERANK, signals=True) == expected
    assert {
        s.name for s in own.suggest(fresh[:1], settings=RERANK, explain=True)[0][0].signals
    } == {
        "similar documents",
        "named in the text",
        "any candidate",
    }


def test_the_latent_signal_alone_needs_the_autoencoder_too(tmp_path):
    pytest.importorskip("torch", reason="needs the extra `train`")
    tiny = TrainingSettings(preset="8", epochs=1, device="cpu")
    settings = replace(QUICK, documents=20, rounds=2, groups=("votes", "latent"))
    with made(tmp_path / "c", demo_documents(160, 0)) as indexer:
        indexer.train(label_ae=tiny, rerank=settings)
        models = indexer.runtime.models
        assert models.get(RerankModel).info.groups == ("votes", "latent")
        before = Rerank().models_checksum(models)
        report = indexer.train(label_ae=replace(tiny, seed=1), rerank=False)
        assert report.outdated_reranker
        assert Rerank().models_checksum(models) != before


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
    candidates = _candidates(own.queries([text], RERANK.k), RERANK)
    assert width in candidates.pairs.columns.tolist()


def test_a_reranker_of_another_collection_is_refused(own, tmp_path):
    with made(tmp_path / "other", demo_documents(30, 0)) as other:
        folders = (one.runtime.models.folder / "rerank" for one in (own, other))
        shutil.copytree(*folders)
        with pytest.raises(ModelMismatchError) as caught:
            other.suggest([Document("q", "Wheat")], settings=RERANK)
    assert "\n" not in str(caught.value)


def test_prediction_needs_no_training_libraries(trained):
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
        [sys.executable, "-c", code, str(trained)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_another_representation_is_refused_before_it_is_indexed(own, fresh):
    settings = Settings.from_config(own.config, "rerank")
    calls = (
        lambda name: own.suggest(fresh[:2], settings=settings, representation=name),
        lambda name: own.evaluate(fresh[:2], settings=settings, representation=name),
        lambda name: own.labels(fresh[:2], settings, name),
        lambda name: own.explain(fresh[0], [], settings=settings, representation=name),
    )
    for call in calls:
        for name in ("lsa", "stems,lsa", "lemmas"):
            with pytest.raises(ModelMismatchError, match="by stems, not by") as caught:
                call(name)
            assert "--representation stems" in str(caught.value)
            assert f"--only rerank --representation {name}" in str(caught.value)
        call("stems")
    update_config(own.collection.path / "labelkin.toml", {"representation": {"name": "lsa"}})
    with pytest.raises(ModelMismatchError, match="by stems, not by lsa"):
        own.suggest(fresh[:2], settings=settings)
    folders = list((own.collection.path / "indexes").glob("vectors-*"))
    assert folders == []


def test_other_settings_of_the_search_are_warned_about_once(own, fresh, caplog):
    settings = Settings.from_config(own.config, "rerank")
    own.suggest(fresh[:2], settings=settings)
    assert not caplog.records
    update_config(own.collection.path / "labelkin.toml", {"neighbours": {"max_query_terms": 9}})
    for _ in range(2):
        own.suggest(fresh[:2], settings=settings)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "max_query_terms: 0, now 9" in line
    assert "labelkin train" in line


def test_a_model_without_a_recorded_representation_is_used(own, fresh):
    path = own.collection.path / "models" / "rerank" / "model.json"
    content = json.loads(path.read_text())
    del content["checksum"], content["neighbours"]
    path.write_text(json.dumps(content))
    settings = Settings.from_config(own.config, "rerank")
    assert own.suggest(fresh[:2], settings=settings)
    assert "rerank" in own.info().models
