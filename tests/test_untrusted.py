"""Hostile files that each promise of SECURITY.md is about, and regressions that fuzzing found."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.model import LabelModel
from labelkin.checksums import listed_name, read_sealed, sealed
from labelkin.corpus import FORMATS, ReadReport, read_corpus, source
from labelkin.corpus.intake import Intake
from labelkin.corpus.source import Source
from labelkin.evaluate.files import read_label_file
from labelkin.exceptions import (
    DamagedFileError,
    FormatError,
    InputError,
    LabelkinError,
    ModelDamagedError,
)
from labelkin.neighbours.neighbours import Neighbours
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank.model import RerankModel
from labelkin.rerank.trees import Trees
from labelkin.tensors import TensorFile, npz_arrays, tensor_bytes
from labelkin.vocab import read_vocabulary

Write = Callable[[str, str | bytes], Path]

MEGABYTE = 1 << 20
FIXTURE = Path(__file__).parent / "fixtures" / "collection-0.1.tar.gz"
LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 20}">'
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + '<!ENTITY file SYSTEM "file:///etc/passwd">]>'
)


def read_all(path: Path, format: str | None = None) -> tuple[list[Document], Any]:
    corpus = read_corpus(path, format=format, force=True)
    return list(corpus.documents()), corpus.report


def test_a_number_that_no_computer_holds(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("c.json", '{"articles": [{"pmid": 1e' + "9" * 80 + ', "title": "On rye"}]}')
    documents, _ = read_all(path, "bioasq")
    assert documents == []
    assert "c.json: broken JSON after article 0: a number is out of range" in caplog.text


@pytest.mark.parametrize("digits", [5_000, 200_000])
def test_a_number_that_ends_the_parser(
    digits: int, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    number = "-" + "9" * digits
    good = '{"pmid": 7, "title": "On rye", "abstractText": "' + number + '"}'
    bad = '{"pmid": ' + number + "}"
    path = write("c.json", '{"articles": [' + good + ", " + bad + "]}")
    documents, _ = read_all(path, "bioasq")
    assert len(documents) <= 1
    assert "a number has more than 1,000 digits" in caplog.text


def test_digits_in_texts_are_no_numbers(write: Write) -> None:
    text = "9" * 200_000
    path = write("c.json", '{"articles": [{"pmid": 7, "title": "' + text + '"}]}')
    assert [one.title for one in read_all(path, "bioasq")[0]] == [text]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("c.json.gz", b'{"articles": [{"pmid": "1", "title": "'),
        ("c.xml.gz", b"<PubmedArticleSet><PubmedArticle><PMID>"),
        ("d.xml.gz", b"<PubmedArticleSet>" + b"<a/>" * 1000),
    ],
)
def test_a_bomb_is_not_unpacked_into_memory(name: str, start: bytes, write: Write) -> None:
    packed = gzip.compress(start + b"ha " * (40 * MEGABYTE), 1)
    assert len(packed) < 2 * MEGABYTE
    path = write(name, packed)
    del packed
    tracemalloc.start()
    documents, report = read_all(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert documents == []
    assert report.files_damaged
    assert peak < 300 * MEGABYTE


def test_a_line_without_end(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", MEGABYTE)
    line = b'{"id": "1", "title": "x"}\n'
    path = write(
        "c.jsonl.gz", gzip.compress(line + b'{"id": "2", "title": "' + b"x" * 3 * MEGABYTE)
    )
    documents, report = read_all(path)
    assert [document.id for document in documents] == ["1"]
    assert report.files_damaged


@pytest.mark.parametrize("entity", ["&i;", "&file;", "&nothing;"])
def test_entities_of_documents(entity: str, write: Write) -> None:
    article = (
        "<PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>On rye "
        f"{entity}</ArticleTitle></Article></MedlineCitation></PubmedArticle>"
    )
    path = write("c.xml", f"{LAUGHS}<PubmedArticleSet>{article}</PubmedArticleSet>")
    documents, _ = read_all(path)
    assert all(len(document.text) < 100 for document in documents)
    assert "root:" not in "".join(document.text for document in documents)


def test_entities_of_descriptors(write: Write) -> None:
    record = (
        "<DescriptorRecord><DescriptorUI>D1</DescriptorUI><DescriptorName><String>Bread &i; &file;"
        "</String></DescriptorName></DescriptorRecord>"
    )
    path = write("desc.xml", f"{LAUGHS}<DescriptorRecordSet>{record}</DescriptorRecordSet>")
    try:
        names = [concept.name() for concept in read_vocabulary(path)]
    except LabelkinError as error:
        names = [str(error)]
    assert all(len(name) < 500 and "root:" not in name for name in names)


@pytest.mark.parametrize("format", ["jsonl", "annif-jsonl", "bioasq", "csv", "tsv", "annif-tsv"])
@pytest.mark.parametrize(
    "content",
    [
        b'{"id": "1", "title": ' + b"[" * 100_000,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'[{"id": "1", "title": "x", "a": ' + b'{"a":' * 50_000,
        b"\x00" * 10_000,
        b'{"id": "a\x00b", "title": "\x00x"}\n',
        b"id,title\n1\x002,a\x00b\n",
        b"\xed\xa0\x80",
        b'{"articles": [{"pmid": "1", "title": "a\xed\xa0\x80b"}]}',
    ],
)
def test_nested_and_odd_bytes(format: str, content: bytes, write: Write) -> None:
    documents, _ = read_all(write("c", content), format)
    assert all("\x00" not in document.id + document.text for document in documents)


@pytest.mark.parametrize(
    "identifier", ["../../outside", "/tmp/outside", "..", "a/../../b", "C:\\x"]
)
def test_ids_are_never_paths(identifier: str, tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "inner" / "c") as indexer:
        indexer.add([Document(identifier, "On rye", labels=("a",))])
        assert [document.id for document in indexer.documents()] == [identifier]
        indexer.neighbours([Document("q", "On rye")])
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    assert [path.name for path in (tmp_path / "inner").iterdir()] == ["c"]


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "", ".", "..", "a/b", "a\\b", "a\x00", "x" * 300]
)
def test_names_in_descriptions_stay_in_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a file in this folder"):
        listed_name(name)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "collection" / "models"


def changed(model: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a model with another description, whose checksum is right."""
    copy = folder / model.name
    shutil.copytree(model, copy)
    content = read_sealed(copy / "model.json")
    change(content)
    (copy / "model.json").write_text(sealed(content))
    return copy


def test_a_model_cannot_name_files_elsewhere(old: Path, tmp_path: Path) -> None:
    weights = next((old / "label-ae").glob("weights-*"))
    shutil.copy(weights, tmp_path)
    elsewhere = changed(
        old / "label-ae", tmp_path, lambda one: one.update(weights=f"../{weights.name}")
    )
    with pytest.raises(ModelDamagedError, match="not the name of a file"):
        LabelModel.load(elsewhere)
    reranker = changed(
        old / "rerank", tmp_path, lambda one: one["files"].update(ranker="../../ranker.txt")
    )
    with pytest.raises(ModelDamagedError, match="not the name of a file"):
        RerankModel.load(reranker)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("groups", [[]]),
        ("training", 1.5),
        ("versions", "x"),
        ("calibration", {"raw": ["x"]}),
        ("files", {"ranker": "\x00"}),
    ],
)
def test_odd_values_of_a_reranker(key: str, value: Any, old: Path, tmp_path: Path) -> None:
    reranker = changed(old / "rerank", tmp_path, lambda one: one.update({key: value}))
    with pytest.raises(LabelkinError) as refused:
        RerankModel.load(reranker)
    assert len(str(refused.value).splitlines()) == 1


def test_a_ranker_that_is_no_text(old: Path, tmp_path: Path) -> None:
    content = next((old / "rerank").glob("ranker-*")).read_bytes() + b"\xcc"
    name = f"ranker-{hashlib.blake2b(content, digest_size=8).hexdigest()}.txt"
    reranker = changed(old / "rerank", tmp_path, lambda one: one["files"].update(ranker=name))
    (reranker / name).write_bytes(content)
    with pytest.raises(ModelDamagedError):
        RerankModel.load(reranker)


def test_deeply_nested_descriptions(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"a": ' * 100_000)
    for kind in (LabelModel, RerankModel):
        with pytest.raises(ModelDamagedError, match="not a JSON object"):
            kind.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [1 << 40]},
        {"shape": [-3]},
        {"shape": ["3"]},
        {"shape": None},
        {"dtype": "O"},
        {"dtype": []},
        {"data_offsets": [0, 1 << 40]},
        {"data_offsets": [-12, 0]},
        {"data_offsets": [0]},
    ],
)
def test_headers_of_tensors_are_checked(change: dict[str, Any], write: Write) -> None:
    content = tensor_bytes({"a": np.zeros(3, dtype=np.float32)})
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["a"].update(change)
    text = json.dumps(header).encode()
    path = write("a.safetensors", len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(ValueError, match=r"arrays|array|sizes|offsets|unpack"):
        TensorFile(path, None)


def npz(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def array(declared: str, content: bytes) -> bytes:
    header = declared.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }"
OBJECTS = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        npz(ids=array(HUGE, b"\x00" * 80)),
        npz(ids=array(OBJECTS, b"cos\nsystem\n(S'true'\ntR.")),
        npz(ids=array("{'descr': " + "(" * 90, b"")),
        npz(ids=b"\x00" * (300 * MEGABYTE)),
        npz(ids=array(HUGE.replace("100000000000000", "1"), b"\x00" * 8)).replace(
            b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"
        ),
        # A directory that claims to begin behind its place: members before the file's beginning.
        npz(ids=array(HUGE, b""))[:-6] + (1_000_000).to_bytes(4, "little") + b"\x00\x00",
    ],
    ids=["empty", "cut", "huge", "pickle", "nested", "bomb", "encrypted", "misplaced"],
)
def test_arrays_in_zip_files(content: bytes, write: Write) -> None:
    path = write("a.npz", content)
    with pytest.raises(ValueError, match="npz"):
        npz_arrays(path)
    with pytest.raises(DamagedFileError):
        Neighbours.load(path)
    with pytest.raises(InputError):
        read_label_file(path)


@pytest.mark.parametrize(
    ("left", "right"),
    [([0, -1], [-2, -3]), ([1, 0], [-2, -3]), ([1, -1], [-2, -9]), ([7, -1], [-2, -3])],
)
def test_trees_lead_to_leaves(left: list[int], right: list[int]) -> None:
    def trees(left: list[int], right: list[int]) -> Trees:
        return Trees(
            roots=np.array([0]),
            features=np.array([0, 1]),
            thresholds=np.zeros(2, dtype=np.float32),
            missing_left=np.zeros(2, dtype=np.bool_),
            left=np.array(left),
            right=np.array(right),
            leaves=np.zeros(3),
        )

    trees([1, -1], [-2, -3])
    with pytest.raises(ValueError, match="nowhere or back"):
        trees(left, right)


@pytest.mark.parametrize(
    ("roots", "left"),
    [
        ([0], [-1, -3, -5, -7]),
        ([0, 2], [1, 3, 3, -7]),
        ([0, 1], [2, 3, -5, -7]),
        ([2, 0], [1, -3, 3, -7]),
    ],
    ids=["unreached", "reached twice", "of another tree", "roots in another order"],
)
def test_trees_are_whole_and_apart(roots: list[int], left: list[int]) -> None:
    def trees(roots: list[int], left: list[int]) -> Trees:
        return Trees(
            roots=np.array(roots),
            features=np.zeros(4, dtype=np.int64),
            thresholds=np.zeros(4, dtype=np.float32),
            missing_left=np.zeros(4, dtype=np.bool_),
            left=np.array(left),
            right=np.array([-2, -4, -6, -8]),
            leaves=np.zeros(8),
        )

    trees([0, 2], [1, -3, 3, -7])
    with pytest.raises(ValueError, match="of no tree or of several"):
        trees(roots, left)


def test_as_many_terms_as_weights() -> None:
    with pytest.raises(ValueError, match="3 terms with 2 weights"):
        TermColumns(b"a\nb\nc", np.zeros(2, dtype=np.float32))


def test_the_header_of_a_table_is_shown_on_one_line(write: Write) -> None:
    with (
        Source(write("c.csv", '1,"x\ny",z\n1,2,3\n')) as opened,
        pytest.raises(FormatError, match="no column with text") as refused,
    ):
        list(FORMATS["csv"].read(opened, Intake("c.csv", ReadReport())))
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", [" 2 3", "", " "])
def test_a_line_of_commas_takes_no_time(end: str, write: Write) -> None:
    with pytest.raises(InputError):
        read_label_file(write("gold.txt", "," * 60_000 + "4" + end + "\n2 \n"))
