from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in the test's folder and return what it did."""
    from labelkin.cli.main import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    runner = CliRunner()

    def run_command(*arguments: object) -> Result:
        result = runner.invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        return result

    return run_command


VOCABULARY = (
    "ui\tname\ttree_numbers\tentry_terms\n"
    "D000001\tBread\tJ01\tLoaf\nD000002\tBread, Rye\tJ01.100\tRye Bread\nD000003\tOats\tB01\t\n"
)
CORPUS = (
    '{"id": "1", "title": "On rye", "labels": ["Rye Bread", "Wheat"], "language": "en"}\n'
    '{"id": "2", "title": "On oats", "labels": ["Oats"], "language": "en"}\n'
    '{"id": "3", "title": "On nothing", "language": "en"}\n'
)


@pytest.fixture
def collection(run: Run, tmp_path: Path) -> Path:
    """A collection of three documents."""
    (tmp_path / "v.tsv").write_text(VOCABULARY)
    (tmp_path / "c.jsonl").write_text(CORPUS)
    assert run("init", "c", "--vocab", "v.tsv").exit_code == 0
    assert run("add", "c", "c.jsonl").exit_code == 0
    return tmp_path / "c"


@pytest.fixture
def demo(run: Run) -> str:
    """A collection of 300 documents, beside 100 that are not in it (held.jsonl)."""
    assert run("demo", "demo", "--documents", 400, "--json").exit_code == 0
    assert run("corpus", "convert", "demo", "-o", "all.jsonl").exit_code == 0
    lines = Path("all.jsonl").read_text().splitlines(keepends=True)
    Path("held.jsonl").write_text("".join(lines[300:]))
    ids = [json.loads(line)["id"] for line in lines[300:]]
    assert run("remove", "demo", *ids).exit_code == 0
    return "demo"


@pytest.fixture(scope="session")
def _reranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    from labelkin import Indexer
    from labelkin.corpus import write_corpus
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.rerank.settings import RerankTrainingSettings
    from labelkin.vocab import Vocabulary

    folder = tmp_path_factory.mktemp("reranked")
    documents = list(demo_documents(400, 0))
    with Indexer.create(folder / "demo", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(documents[:340])
        report = indexer.train_reranker(settings=RerankTrainingSettings(rounds=20, linear=False))
        assert indexer.adopt_reranker(report)
    write_corpus(documents[340:], folder / "held.jsonl")
    return folder


@pytest.fixture
def reranked(run: Run, _reranked: Path, tmp_path: Path) -> str:
    """A collection whose default method is `rerank`, beside documents that are not in it."""
    shutil.copytree(_reranked, tmp_path, dirs_exist_ok=True)
    return "demo"
