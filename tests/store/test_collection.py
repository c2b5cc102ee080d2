from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Deletion, Document
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionExistsError,
    CollectionNotFoundError,
    CollectionTooNewError,
    ConfigError,
    InputError,
    VocabularyError,
)
from labelkin.indexer import Indexer
from labelkin.store.config import Config, update_config
from labelkin.store.database import Database
from labelkin.vocab import Vocabulary


@pytest.fixture
def indexer(tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]) -> Indexer:
    made = Indexer.create(tmp_path / "c", vocabulary)
    made.add(documents)
    yield made
    made.close()


def labels_of(indexer: Indexer, identifier: str) -> tuple[str, ...]:
    document = indexer.document(identifier)
    assert document is not None
    return document.labels


def test_documents_come_back_with_ids_and_names(indexer: Indexer) -> None:
    first, second, third = indexer.documents()
    assert first.labels == ("V1", "V2")
    assert first.label_names == {"V1": "Bread", "V2": "Bread, Rye"}
    assert second.labels == ("V3",)
    assert third.labels == ()
    assert indexer.document("nobody") is None


def test_everything_about_a_document_survives(indexer: Indexer) -> None:
    document = Document(
        "x",
        "Title \U0001f35e",
        "Body",
        fields={"toc": "a\nb"},
        language="de",
        metadata={"year": 1999, "mesh": [{"major": True}], "ratio": 0.5},
        labels=("V1", "Unheard-of"),
        label_names={"V1": "Bread"},
    )
    indexer.add([document])
    assert indexer.document("x") == document


def test_adding_again_replaces(indexer: Indexer) -> None:
    report = indexer.add([Document("d1", "New title", language="en", labels=("V3",))])
    assert (report.added, report.replaced, report.unchanged) == (0, 1, 0)
    assert labels_of(indexer, "d1") == ("V3",)
    assert indexer.info().documents == 3
    assert [document.id for document in indexer.documents()] == ["d2", "d3", "d1"]


def test_adding_the_same_changes_nothing(indexer: Indexer, documents: list[Document]) -> None:
    before = indexer.collection.generation()
    report = indexer.add(documents)
    assert (report.added, report.replaced, report.unchanged) == (0, 0, 3)
    assert indexer.collection.generation() == before


def test_the_last_of_a_batch_wins(indexer: Indexer) -> None:
    items = [
        Document("n", "first"),
        Document("n", "second"),
        Document("gone", "x"),
        Deletion("gone"),
        Deletion("d2"),
        Document("d3", "changed"),
        Deletion("d3"),
        Document("d3", "back"),
    ]
    report = indexer.add(items)
    assert {document.id: document.title for document in indexer.documents()} == {
        "d1": "Baking with rye",
        "n": "second",
        "d3": "back",
    }
    assert (report.added, report.removed) == (1, 1)


def test_rows_are_never_reused(indexer: Indexer) -> None:
    indexer.remove(["d3"])
    indexer.add([Document("d4", "x", labels=("V1",))])
    collection = indexer.collection
    assert collection.generation().next_row == 4
    assert list(collection.tombstones()) == [2]
    assert list(collection.label_sets().columns(3)) == [0]


def test_remove_lists_what_is_missing(indexer: Indexer) -> None:
    report = indexer.remove(["d1", "nobody", "d1"])
    assert (report.removed, report.missing) == (1, ("nobody",))
    assert [document.id for document in indexer.documents()] == ["d2", "d3"]
    assert indexer.remove(["d1"]).missing == ("d1",)


def test_unresolved_labels_are_counted_and_kept_as_text(indexer: Indexer) -> None:
    report = indexer.add(
        [
            Document("a", "x", labels=("Wheat", "Dark Loaf", "V1")),
            Document("b", "x", labels=("Wheat", "http://e.org/9"), label_names={"Wheat": "W"}),
        ]
    )
    assert report.unresolved == {"Wheat": 1, "W (Wheat)": 1, "http://e.org/9": 1}
    assert report.ambiguous == {"Dark Loaf": 1}
    assert labels_of(indexer, "a") == ("Wheat", "Dark Loaf", "V1")
    assert indexer.info().documents_with_unresolved_labels == 2
    assert len(indexer.vocabulary) == 5


def test_unknown_labels_can_be_kept_as_concepts(indexer: Indexer) -> None:
    document = Document(
        "a", "x", labels=("Wheat", "u://9", "wheat"), label_names={"u://9": "Oats"}, language="de"
    )
    report = indexer.add([document], keep_unknown=True)
    assert report.new_concepts == 2
    assert labels_of(indexer, "a") == ("Wheat", "u://9")
    # A homonym of a known concept stays a concept of its own.
    assert indexer.vocabulary.concept("u://9").names == {"de": "Oats"}


def test_without_a_vocabulary_labels_become_it(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer:
        indexer.add(
            [
                Document("1", "x", labels=("D1", "D2"), label_names={"D1": "One", "D2": "One"}),
                Document("2", "x", labels=("D1", "http://e.org/3")),
            ]
        )
        assert [concept.id for concept in indexer.vocabulary] == ["D1", "D2", "http://e.org/3"]
        assert indexer.vocabulary[2].name() == "http://e.org/3"
        assert labels_of(indexer, "2") == ("D1", "http://e.org/3")


def test_languages(tmp_path: Path, vocabulary: Vocabulary) -> None:
    german = "Der Teig muss über Nacht an einem warmen Ort ruhen, bevor er gebacken wird."
    with Indexer.create(tmp_path / "auto", vocabulary) as indexer:
        indexer.add([Document("1", german), Document("2", german, language="nl")])
        assert indexer.info().languages == {"de": 1, "nl": 1}
    with Indexer.create(tmp_path / "fixed", vocabulary, language="eng") as indexer:
        indexer.add([Document("1", german)])
        assert indexer.info().languages == {"en": 1}
    with pytest.raises(ConfigError, match="'Elvish' is not a language code"):
        Indexer.create(tmp_path / "no", language="Elvish")
    assert not (tmp_path / "no").exists()


def test_long_texts_are_cut_and_reported(indexer: Indexer) -> None:
    report = indexer.add([Document("long", "x", "y" * 10_000_000)])
    assert report.cut == ["long"]
    stored = indexer.document("long")
    assert stored is not None
    assert len(stored.body) == indexer.config.documents.max_characters


def test_text_that_is_no_unicode_is_stored(indexer: Indexer) -> None:
    indexer.add([Document("s", "a\ud800b", metadata={"k": ["\udfff"]}, labels=("\ud800",))])
    stored = indexer.document("s")
    assert stored is not None
    assert stored.title == "a?b"


def test_an_empty_id_is_refused(indexer: Indexer) -> None:
    with pytest.raises(InputError, match="without an id"):
        indexer.add([Document("ok", "x"), Document(" ", "x")])
    assert indexer.document("ok") is None
    assert indexer.info().documents == 3


def test_a_failed_batch_leaves_the_ones_before(tmp_path: Path, vocabulary: Vocabulary) -> None:
    def failing() -> object:
        for number in range(2500):
            yield Document(str(number), "x", labels=(f"new {number}",), language="en")
        raise RuntimeError

    with Indexer.create(tmp_path / "c") as indexer:
        with pytest.raises(RuntimeError):
            indexer.add(failing())  # type: ignore[arg-type]
        assert indexer.info().documents == 2000
        assert len(indexer.vocabulary) == 2000


def test_info(indexer: Indexer) -> None:
    info = indexer.info()
    assert (info.documents, info.documents_without_labels) == (3, 1)
    assert (info.concepts, info.labels_used, info.label_occurrences) == (5, 3, 3)
    assert info.labels_per_document_mean == 1.0
    assert info.labels_per_document_max == 2
    assert info.labels_with_at_least["100"] == 0
    assert info.vocabulary_languages == ["de", "en"]
    assert info.disk_bytes > 10_000
    indexer.remove(["d1"])
    assert (indexer.info().documents, indexer.info().label_occurrences) == (2, 1)


def test_info_of_an_empty_collection(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer:
        info = indexer.info()
    assert (info.documents, info.concepts, info.labels_per_document_mean) == (0, 0, 0.0)


def test_another_process_sees_changes_at_once(indexer: Indexer) -> None:
    with Indexer.open(indexer.collection.path) as other:
        assert other.info().documents == 3
        before = other.collection.generation()
        indexer.add([Document("new", "x", labels=("Hops",))], keep_unknown=True)
        indexer.remove(["d1"])
        assert other.collection.generation().number == before.number + 2
        assert other.info().documents == 3
        assert other.vocabulary.find("hops").id == "Hops"
        assert labels_of(other, "new") == ("Hops",)


def test_a_snapshot_stays_while_others_write(indexer: Indexer) -> None:
    with Indexer.open(indexer.collection.path) as other:
        snapshot = other.collection.snapshot()
        before = other.collection.generation()
        indexer.remove(["d1"])
        assert snapshot.generation() == before
        assert snapshot.document("d1") is not None
        assert other.collection.generation() != before


def test_a_writer_that_waits_too_long_gets_a_clear_message(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.store.database.WRITER_PATIENCE_SECONDS", 0.2)
    with (
        Indexer.open(indexer.collection.path) as other,
        indexer.collection.database.transaction(),
        pytest.raises(CollectionBusyError, match="another process has been writing"),
    ):
        other.remove(["d1"])
    assert indexer.remove(["d1"]).removed == 1


def test_many_small_adds_leave_few_segments(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        for number in range(40):
            indexer.add([Document(str(number), "x", labels=("V1",), language="en")])
        sets = indexer.collection.label_sets()
        assert sets.rows == 40
        assert len(sets.segments) <= 7
        assert indexer.info().label_occurrences == 40


@pytest.mark.parametrize("damage", ["remove", "cut", "garbage", "another history"])
def test_label_sets_are_rebuilt_from_the_database(
    damage: str, indexer: Indexer, tmp_path: Path
) -> None:
    folder = tmp_path / "c" / "labels"
    manifest = folder / "manifest.json"
    if damage == "remove":
        shutil.rmtree(folder)
    elif damage == "cut":
        for path in folder.glob("*.npy"):
            path.write_bytes(path.read_bytes()[:90])
    elif damage == "garbage":
        manifest.write_text("{")
    else:
        content = json.loads(manifest.read_text())
        for milestone in content["history"]:
            milestone[1] = "token of another history"
        manifest.write_text(json.dumps(content))
    with Indexer.open(tmp_path / "c") as again:
        assert again.info().label_occurrences == 3
        again.add([Document("d4", "x", labels=("V1",))])
        assert again.info().label_occurrences == 4
        assert again.collection.pending_rows() == 0


def test_a_restored_backup_gets_the_right_label_sets(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    def documents(name: str, count: int, label: str) -> list[Document]:
        return [Document(f"{name}{n}", "x", labels=(label,), language="en") for n in range(count)]

    folder = tmp_path / "c"
    with Indexer.create(folder, vocabulary) as indexer:
        indexer.add(documents("a", 50, "V1"))
    shutil.copy(folder / "documents.sqlite", tmp_path / "backup")
    with Indexer.open(folder) as indexer:
        indexer.add(documents("old", 30, "V2"))
    shutil.copy(tmp_path / "backup", folder / "documents.sqlite")
    with Indexer.open(folder) as indexer:
        for part in range(4):
            indexer.add(documents(f"new{part}-", 25, "V3"))
        counts = indexer.collection.label_sets().frequencies(5, np.empty(0, dtype=np.int64))
    assert list(counts) == [50, 0, 100, 0, 0]


def test_creating_in_an_empty_folder_of_any_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Indexer.create(".").close()
    assert (tmp_path / "here" / "manifest.json").exists()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Indexer.create(tmp_path / "link").close()
    assert (tmp_path / "real" / "manifest.json").exists()
    Indexer.create(tmp_path / "deep" / "er").close()


def test_names_beside_unresolved_labels_stay(indexer: Indexer) -> None:
    document = Document(
        "u", "x", labels=("http://z.org/9",), label_names={"http://z.org/9": "Nine"}, language="en"
    )
    indexer.add([document])
    assert indexer.document("u") == document


def test_uris_that_look_alike_stay_apart(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer:
        indexer.add([Document("1", "x", labels=("http://a.org/t/1", "http://b.org/o/1", "1"))])
        assert len(indexer.vocabulary) == 3


def test_very_long_texts_make_smaller_batches(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(Document(str(n), "x", "y" * 200_000) for n in range(250))
        assert indexer.collection.generation().number == 3


def test_creating_over_something_is_refused(tmp_path: Path, indexer: Indexer) -> None:
    with pytest.raises(CollectionExistsError, match="already exists"):
        Indexer.create(tmp_path / "c")
    (tmp_path / "file").write_text("x")
    with pytest.raises(CollectionExistsError):
        Indexer.create(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    Indexer.create(tmp_path / "empty").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "empty", "file"]


def test_a_failed_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("labelkin.store.collection.write_manifest", fail)
    with pytest.raises(KeyboardInterrupt):
        Indexer.create(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_unusable_folders(tmp_path: Path, indexer: Indexer) -> None:
    indexer.close()
    with pytest.raises(CollectionNotFoundError, match="labelkin init"):
        Indexer.open(tmp_path / "nothing")

    def copy(name: str) -> Path:
        return Path(shutil.copytree(tmp_path / "c", tmp_path / name))

    newer = copy("newer")
    content = json.loads((newer / "manifest.json").read_text())
    (newer / "manifest.json").write_text(json.dumps(content | {"format_version": 99}))
    with pytest.raises(CollectionTooNewError, match="format 99"):
        Indexer.open(newer)
    garbled = copy("garbled")
    (garbled / "manifest.json").write_text("}")
    with pytest.raises(CollectionDamagedError, match="cannot be read"):
        Indexer.open(garbled)
    other = copy("other")
    (other / "manifest.json").write_text('{"format": "else"}')
    with pytest.raises(CollectionDamagedError, match="not the manifest"):
        Indexer.open(other)
    headless = copy("headless")
    (headless / "documents.sqlite").unlink()
    with pytest.raises(CollectionDamagedError, match=r"documents.sqlite: missing; .* backup"):
        Indexer.open(headless)
    (headless / "documents.sqlite").touch()
    with pytest.raises(CollectionDamagedError, match=r"documents.sqlite: empty; .* backup"):
        Indexer.open(headless)
    foreign = copy("foreign")
    with closing(sqlite3.connect(foreign / "documents.sqlite")) as connection:
        connection.execute("DROP TABLE changes")
    with pytest.raises(CollectionDamagedError, match="not the database of a collection"):
        Indexer.open(foreign).snapshot()
    corrupt = copy("corrupt")
    (corrupt / "documents.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(CollectionDamagedError, match="not a database"):
        Indexer.open(corrupt)


def test_a_damaged_page_is_reported_in_one_line(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add(Document(str(n), "word " * 200, language="en") for n in range(500))
    path = tmp_path / "c" / "documents.sqlite"
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 40_000] = b"\xff" * 40_000
    path.write_bytes(content)
    with Indexer.open(tmp_path / "c") as again, pytest.raises(CollectionDamagedError) as caught:
        list(again.documents())
    assert "\n" not in str(caught.value)


def test_the_database_can_be_read_with_plain_sqlite(indexer: Indexer) -> None:
    connection = sqlite3.connect(indexer.collection.database.path)
    rows = connection.execute("SELECT id, labels FROM documents ORDER BY row").fetchall()
    connection.close()
    assert [(name, list(np.frombuffer(blob, "<i4"))) for name, blob in rows] == [
        ("d1", [0, 1]),
        ("d2", [2]),
        ("d3", []),
    ]


def test_database_errors_keep_their_meaning(tmp_path: Path) -> None:
    database = Database.create(tmp_path / "d.sqlite")
    with pytest.raises(VocabularyError), database.transaction():
        raise VocabularyError("passes through")
    assert not database.connection.in_transaction
    database.close()


def test_detection_prefers_the_languages_of_the_collection(
    tmp_path: Path, vocabulary: Vocabulary
) -> None:
    finnish = "Joessa on keväällä enemmän vettä kuin kukaan osasi odottaa."
    english = "In spring the river carries more water than anybody had thought."
    german = "Der Fluss führt im Frühling mehr Wasser, als man gedacht hatte."
    title = Document("title", "Uusi maailma")
    with Indexer.create(tmp_path / "empty", vocabulary) as indexer:
        # One batch: its own clear texts decide about the unclear one.
        stated = [Document(f"s{n}", english, language="en") for n in range(3)]
        indexer.add([title, *stated, *(Document(f"f{n}", finnish) for n in range(3))])
        assert indexer.info().languages == {"fi": 4, "en": 3}
        assert [one.language for one in indexer.collection.prepared([title])] == ["fi"]
        indexer.add([Document("new", german), Document("number", "1914-1918")])
        assert indexer.info().languages == {"fi": 5, "en": 3, "de": 1}
        # A document that is added again keeps its language, so it is unchanged.
        indexer.add(
            Document(f"e{n}", "Alla lingua della musica", language="et") for n in range(500)
        )
        assert indexer.collection.expected_languages() == ("et",)
        assert indexer.add([title, Document("f1", finnish)]).unchanged == 2
        # Its new text is clearly in another language.
        indexer.add([Document("f1", german)])
        replaced = indexer.document("f1")
        assert replaced is not None
        assert replaced.language == "de"


def test_names_in_a_language(indexer: Indexer) -> None:
    collection = indexer.collection
    assert [collection.has_names_in(code) for code in ("en", "de", "fi", 'e"n')] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("content", [None, "", "}", "[]", '{"format": "else"}', "\0" * 200])
def test_a_lost_manifest_says_how_to_recover(
    content: str | None, tmp_path: Path, indexer: Indexer
) -> None:
    indexer.close()
    manifest = tmp_path / "c" / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_text(content)
    for start in (Indexer.open, Indexer.open_or_create, Indexer.create):
        with pytest.raises(CollectionDamagedError) as caught:
            start(tmp_path / "c")
        message = str(caught.value)
        assert f"labelkin doctor {tmp_path / 'c'} --repair" in message
        assert "init" not in message
        assert "\n" not in message


@pytest.mark.parametrize("state", ["missing", "empty"])
def test_without_settings_the_defaults_are_used(
    state: str, tmp_path: Path, indexer: Indexer, caplog: pytest.LogCaptureFixture
) -> None:
    indexer.close()
    (tmp_path / "c" / "labelkin.toml").unlink()
    if state == "empty":
        (tmp_path / "c" / "labelkin.toml").touch()
    caplog.set_level("INFO", "labelkin")
    with Indexer.open(tmp_path / "c") as opened:
        assert opened.config == Config()
        (line,) = [record.getMessage() for record in caplog.records]
        assert f"labelkin.toml: {state}; using the defaults" in line
        update_config(tmp_path / "c" / "labelkin.toml", {"neighbours": {"k": 7}})
        assert opened.config.neighbours.k == 7


def test_settings_that_vanish_stay_in_use(tmp_path: Path, indexer: Indexer) -> None:
    update_config(tmp_path / "c" / "labelkin.toml", {"neighbours": {"k": 7}})
    assert indexer.config.neighbours.k == 7
    (tmp_path / "c" / "labelkin.toml").unlink()
    assert indexer.config.neighbours.k == 7


def test_a_collection_without_revisions_is_upgraded(
    tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]
) -> None:
    """As collections were between version 0.1 and the next: they had no such column."""
    path = tmp_path / "c"
    with Indexer.create(path, vocabulary) as indexer:
        indexer.add(documents)
        indexer.collection.database.query("ALTER TABLE documents DROP COLUMN revision")
        stored = list(indexer.documents())
        assert indexer.check().is_sound
    with Indexer.open(path, read_only=True) as indexer:
        assert list(indexer.documents()) == stored
        assert indexer.document("d1") == stored[0]
        assert indexer.show("d1") is not None
        assert indexer.check().is_sound
    with Indexer.open(path) as indexer:
        assert indexer.remove(["d3"]).removed == 1
        revised = replace(documents[0], revision="2024-03-05")
        assert indexer.add([revised]).unchanged == 1
        assert indexer.add([replace(revised, title="Other", revision="2024-03-06")]).replaced == 1
        assert indexer.add([revised]).stale == 1
        assert indexer.check().is_sound
