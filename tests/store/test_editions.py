from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import (
    Concept,
    Correction,
    Document,
    Indexer,
    Settings,
    Vocabulary,
    read_vocabulary,
)
from labelkin.exceptions import (
    CollectionDamagedError,
    CollectionError,
    ConfigError,
    VocabularyError,
)
from labelkin.store.reports import EditionReport

from ..runtime_data import fresh_documents  # noqa: TID252

OLD = [
    Concept("A", {"en": "Cereals"}),
    Concept("B", {"en": "Oats"}, {"en": ("Avena",)}, broader=("A",)),
    Concept("C", {"en": "Rye bread"}, {"en": ("Dark loaf", "Brown loaf")}),
    Concept("D", {"en": "Barley"}, broader=("A",)),
    Concept("E", {"en": "Spelt"}),
    Concept("F", {"en": "Malt"}),
    Concept("G", {"en": "Old grain"}, deprecated=True),
]
NEW = [
    Concept("M", {"en": "Millet"}, {"en": ("Panicum",)}, broader=("A",)),
    Concept("A", {"en": "Cereal crops"}, {"en": ("Cereals",)}),
    Concept("B", {"en": "Oats"}, {"en": ("Avena", "Porridge oats")}),
    Concept("N1", {"en": "Dark loaf"}),
    Concept("N2", {"en": "Brown loaf"}),
    Concept("D", {"en": "Barley"}, deprecated=True, replaced_by=("B",)),
    Concept("H", {"en": "Wort"}, {"en": ("Malt",)}),
]
DOCUMENTS = [
    Document("oats", "Porridge at dawn", labels=("B",), language="en"),
    Document("barley", "Fields of barley", labels=("D", "Millet", "B"), language="en",
             major_labels=("D",)),
    Document("bread", "Baking with rye", labels=("C", "A"), language="en"),
    Document("spelt", "Flour of spelt", labels=("Sorghum", "E"), language="en"),
    Document("malt", "Brewing with malt", labels=("F",), language="en"),
    Document("none", "An empty field", language="en"),
]  # fmt: skip


@pytest.fixture
def indexer(tmp_path: Path) -> Iterator[Indexer]:
    with Indexer.create(tmp_path / "c", Vocabulary(OLD), language="en") as made:
        made.add(DOCUMENTS)
        yield made


def labels(indexer: Indexer) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {one.id: (one.labels, one.major_labels) for one in indexer.documents()}


def state(indexer: Indexer) -> tuple[object, ...]:
    """All that an edition changes: concepts by column, documents with their labels."""
    documents = sorted(indexer.documents(), key=lambda document: document.id)
    return list(indexer.vocabulary), documents


def counts(report: EditionReport) -> dict[str, int]:
    return {kind: count for kind, count in report.changes.items() if count}


def test_documents_follow(indexer: Indexer) -> None:
    columns = {concept.id: column for column, concept in enumerate(indexer.vocabulary)}
    report = indexer.update_vocabulary(Vocabulary(NEW))
    assert counts(report) == {
        "added": 4, "removed": 1, "merged": 2, "split": 1, "renamed": 1, "moved": 1,
        "new synonyms": 1,
    }  # fmt: skip
    assert labels(indexer) == {
        "oats": (("B",), ()),
        "barley": (("B", "M"), ("B",)),
        "bread": (("C", "A"), ()),
        "spelt": (("Sorghum", "E"), ()),
        "malt": (("H",), ()),
        "none": ((), ()),
    }
    assert (report.documents, report.reindexed, report.headings) == (2, 1, 6)
    assert report.followed == {"D": 1, "F": 1}
    assert report.resolved == {"Millet": 1}
    assert report.unresolved == {"Sorghum": 1}
    assert [(one.id, one.successors, one.documents) for one in report.withdrawn] == [
        ("C", ("N1", "N2"), ("bread",)),
        ("E", (), ("spelt",)),
    ]
    assert report.withdrawn_documents == 2
    assert report.new_headings == ["M", "N1", "N2", "H"]
    vocabulary = indexer.vocabulary
    assert all(vocabulary.column(one) == column for one, column in columns.items())
    assert vocabulary.concept("A") == NEW[1]
    assert vocabulary.concept("E") == replace(OLD[4], deprecated=True)
    assert vocabulary.concept("F").replaced_by == ("H",)
    assert indexer.check().is_sound


def test_suggestions_follow(indexer: Indexer) -> None:
    query = Document("", "Brewing with malt and rye, fields of barley and spelt", language="en")
    settings = Settings.from_config(indexer.config, "knn").changed(limit=9)
    indexer.update_vocabulary(Vocabulary(NEW))
    (suggestions,) = indexer.suggest([query], settings=settings)
    names = {one.concept.name() for one in suggestions}
    assert {"Cereal crops", "Oats", "Wort", "Millet"} == names
    # A document is found by the new name of a heading that it carries.
    (found,) = indexer.neighbours([Document("", "crops", language="en")])
    assert [one.id for one in found] == ["bread"]


def test_a_split_heading_is_not_passed_on(indexer: Indexer) -> None:
    """Neither to the first of its successors nor to all of them."""
    edition = [one for one in OLD if one.id != "C"]
    edition += [
        replace(OLD[2], deprecated=True, replaced_by=("N1", "N2")),
        Concept("N1", {"en": "Sourdough"}),
        Concept("N2", {"en": "Pumpernickel"}),
    ]
    report = indexer.update_vocabulary(Vocabulary(edition))
    assert [(one.id, one.successors) for one in report.withdrawn] == [("C", ("N1", "N2"))]
    query = Document("", "Baking with rye", language="en")
    settings = Settings.from_config(indexer.config, "knn").changed(limit=9)
    (suggestions,) = indexer.suggest([query], settings=settings)
    assert [one.concept.id for one in suggestions] == ["A"]
    # Documents that carry it are found by its own name.
    (found,) = indexer.neighbours([Document("", "Sourdough", language="en")])
    assert not found
    (found,) = indexer.neighbours([Document("", "bread", language="en")])
    assert [one.id for one in found] == ["bread"]


def test_a_dry_run_reports_the_same_and_changes_nothing(indexer: Indexer) -> None:
    before, generation = state(indexer), indexer.snapshot().generation()
    tried = indexer.update_vocabulary(Vocabulary(NEW), dry_run=True)
    assert (state(indexer), indexer.snapshot().generation()) == (before, generation)
    done = indexer.update_vocabulary(Vocabulary(NEW))
    assert replace(tried, seconds=0) == replace(done, seconds=0)
    tried = indexer.undo_vocabulary(dry_run=True)
    assert replace(tried, seconds=0) == replace(indexer.undo_vocabulary(), seconds=0)


def test_the_same_edition_changes_nothing(indexer: Indexer) -> None:
    indexer.update_vocabulary(Vocabulary(NEW))
    before, generation = state(indexer), indexer.snapshot().generation()
    assert not indexer.update_vocabulary(Vocabulary(NEW)).is_changed
    assert (state(indexer), indexer.snapshot().generation()) == (before, generation)
    # The former edition has not been forgotten.
    indexer.undo_vocabulary()
    assert indexer.vocabulary.concept("A") == OLD[0]


def test_names_in_languages_that_no_document_has(indexer: Indexer) -> None:
    edition = Vocabulary(replace(one, names={"fr": f"Nom {one.id}", **one.names}) for one in OLD)
    report = indexer.update_vocabulary(edition)
    assert (report.changes["translated"], report.reindexed, report.is_changed) == (6, 0, True)
    assert not len(indexer.snapshot().tombstones())
    # A document in the language follows; those in other languages stay in their rows.
    indexer.add([Document("orge", "Champs d'orge", labels=("A", "D"), language="fr")])
    edition = Vocabulary(
        replace(one, names={"fr": f"Froment {one.id}", **one.names}) for one in OLD
    )
    report = indexer.update_vocabulary(edition)
    assert (report.documents, report.reindexed) == (0, 1)
    (found,) = indexer.neighbours([Document("", "Froment", language="fr")])
    assert found[0].id == "orge"
    # An edition without names in the language leaves them.
    assert not indexer.update_vocabulary(Vocabulary(OLD)).is_changed
    assert indexer.vocabulary.concept("A").names == {"en": "Cereals", "fr": "Froment A"}
    assert indexer.check().is_sound


def test_a_translation_adds_names(indexer: Indexer, tmp_path: Path) -> None:
    """An edition of ids and names in one other language."""
    concepts, documents = state(indexer)
    names = {one.id: f"Nombre {one.id}" for one in OLD if not one.deprecated}
    table = tmp_path / "es.tsv"
    table.write_text("id\tname_es\n" + "".join(f"{one}\t{of}\n" for one, of in names.items()))
    report = indexer.update_vocabulary(read_vocabulary(table))
    assert counts(report) == {"translated": 6}
    assert (report.documents, report.reindexed, report.headings) == (0, 0, 6)
    assert not len(indexer.snapshot().tombstones())
    after, same = state(indexer)
    assert same == documents
    assert after == [
        replace(one, names={**one.names, "es": names[one.id]}) if one.id in names else one
        for one in OLD
    ]
    indexer.add([Document("avena", "Gachas", labels=("Nombre B", "Barley"), language="es")])
    assert labels(indexer)["avena"] == (("B", "D"), ())
    assert indexer.add(DOCUMENTS).unchanged == len(DOCUMENTS)
    assert indexer.check().is_sound
    indexer.undo_vocabulary()
    assert list(indexer.vocabulary) == concepts == OLD


def test_the_first_documents_of_a_withdrawn_heading_are_listed(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.store.editions._COUNTED", 7)
    indexer.add(
        Document(f"s{number:03}", "Flour", labels=("E", "C")[: 1 + number % 2], language="en")
        for number in range(150)
    )
    report = indexer.update_vocabulary(Vocabulary(NEW))
    spelt, bread = report.withdrawn
    assert (spelt.id, spelt.count, bread.id, bread.count) == ("E", 151, "C", 76)
    assert spelt.documents == (*(f"s{number:03}" for number in range(99)), "spelt")
    assert len(bread.documents) == 76
    assert report.withdrawn_documents == 152


def test_undo_restores_the_former_edition(indexer: Indexer) -> None:
    concepts, documents = state(indexer)
    indexer.update_vocabulary(Vocabulary(NEW))
    report = indexer.undo_vocabulary()
    after, restored = state(indexer)
    assert restored == documents
    assert after[: len(OLD)] == concepts == OLD  # type: ignore[index]
    assert all(concept.deprecated for concept in indexer.vocabulary if concept not in OLD)
    assert report.headings == 6
    assert indexer.check().is_sound
    with pytest.raises(CollectionError, match="no former edition to restore"):
        indexer.undo_vocabulary()
    indexer.update_vocabulary(Vocabulary(NEW))
    assert labels(indexer)["barley"] == (("B", "M"), ("B",))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE former_concepts SET concept = '{broken' WHERE concept IS NOT NULL",
         "the former concept in column 0 cannot be read"),
        ("UPDATE former_labels SET labels = x'ffffff7f'", "the former labels of row 6 cannot"),
        ("UPDATE former_labels SET unresolved = '{'", "the former labels of row 6 cannot be read"),
        ("INSERT INTO former_names VALUES (99, 'Wheat', 1)", "a former name belongs to no concept"),
        ("INSERT INTO editions VALUES (-1, 1)", "an edition is not in the change log"),
        ("INSERT INTO moves VALUES (3, 3)", "moves has no earlier row"),
        ("UPDATE former_rows SET former = row", "former_rows has no earlier row"),
    ],
)  # fmt: skip
def test_damage_of_the_former_edition(indexer: Indexer, statement: str, problem: str) -> None:
    indexer.update_vocabulary(Vocabulary(NEW))
    assert indexer.check().is_sound
    with indexer.collection.database.transaction() as connection:
        connection.execute(statement)
    (found,) = (one for one in indexer.check().findings if one.state == "damaged")
    assert problem in found.problem
    if "former_concepts" in statement:
        with pytest.raises(CollectionDamagedError, match="'A' of the former edition cannot be"):
            indexer.undo_vocabulary()


def test_undo_keeps_what_has_happened_since(indexer: Indexer) -> None:
    indexer.update_vocabulary(Vocabulary(NEW))
    indexer.add([Document("new", "Millet porridge", labels=("M", "Cereal crops"), language="en")])
    indexer.correct([Correction("barley", ("A",))])
    indexer.remove(["malt"])
    report = indexer.undo_vocabulary()
    after = labels(indexer)
    assert after["new"] == (("M", "A"), ())
    assert after["barley"] == (("A",), ())
    assert "malt" not in after
    assert [(one.id, one.documents) for one in report.withdrawn if one.documents] == [
        ("M", ("new",))
    ]
    assert indexer.check().is_sound


def test_another_vocabulary_is_refused(indexer: Indexer) -> None:
    other = Vocabulary([Concept("X", {"en": "Ships"}), Concept("A", {"en": "Cereals"})])
    with pytest.raises(VocabularyError, match="lacks 5 of 6 headings; is it another vocabulary"):
        indexer.update_vocabulary(other)
    assert indexer.update_vocabulary(other, force=True).headings == 2
    with pytest.raises(ConfigError, match="read_vocabulary"):
        indexer.update_vocabulary("v.tsv")  # type: ignore[arg-type]
    with pytest.raises(CollectionError, match="there is no former edition"):
        Indexer.create(indexer.collection.path.with_name("d")).undo_vocabulary()


def test_labels_that_became_concepts_stay(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add([Document("1", "Porridge", labels=("Oats", "Breakfast"), language="en")])
        report = indexer.update_vocabulary(Vocabulary(OLD))
        assert labels(indexer)["1"] == (("B", "Breakfast"), ())
        assert not report.withdrawn
        assert not indexer.vocabulary.concept("Breakfast").deprecated


def test_only_labels_that_became_concepts_stay(tmp_path: Path) -> None:
    """A concept of the vocabulary may look the same: an id and a name."""
    plain = [Concept(f"P{number}", {"en": f"Plain {number}"}) for number in range(4)]
    with Indexer.create(tmp_path / "c", Vocabulary(plain), language="en") as indexer:
        one = Document("1", "Porridge", labels=("P0", "Breakfast"), language="en")
        indexer.collection.path.joinpath("labelkin.toml").write_text('[labels]\nunknown = "keep"\n')
        indexer.add([one])
        other = Vocabulary([Concept("X", {"en": "Ships"})])
        with pytest.raises(VocabularyError, match="lacks 4 of 4 headings; is it another"):
            indexer.update_vocabulary(other)
        report = indexer.update_vocabulary(Vocabulary([*plain[1:], Concept("N", {"en": "New"})]))
        assert (report.changes["removed"], report.changes["added"]) == (1, 1)
        assert [one.id for one in report.withdrawn] == ["P0"]
        indexer.add([replace(one, id="2", labels=("N", "Lunch"))])
        # With an edition between, labels have brought columns on both sides of it.
        assert indexer.collection.columns_from_labels().tolist() == [False] * 4 + [
            True, False, True,
        ]  # fmt: skip
        report = indexer.update_vocabulary(Vocabulary(plain[1:]))
        assert [one.id for one in report.withdrawn] == ["N"]
        in_use = {one.id for one in indexer.vocabulary if not one.deprecated}
        assert in_use == {"P1", "P2", "P3", "Breakfast", "Lunch"}


def test_added_documents_follow_as_well(indexer: Indexer) -> None:
    indexer.update_vocabulary(Vocabulary(NEW))
    assert indexer.add(DOCUMENTS).unchanged == len(DOCUMENTS)


RENAMED = [
    replace(OLD[0], names={"en": "Cereal crops"}),
    replace(OLD[1], synonyms={"en": ("Porridge oats",)}),
    *OLD[2:],
]
BY_NAME = [
    Document("a", "Crops of the field", labels=("Cereals", "Avena"), language="en"),
    Document("b", "Bread of rye", labels=("Rye bread",), language="en"),
]


def test_former_names_resolve(indexer: Indexer) -> None:
    indexer.add(BY_NAME)
    indexer.update_vocabulary(Vocabulary(RENAMED))
    report = indexer.add(BY_NAME)
    assert (report.unchanged, report.unresolved) == (2, {})
    report = indexer.add([replace(BY_NAME[0], id="c", labels=("D1",), label_names={"D1": "AVENA"})])
    assert labels(indexer)["c"] == (("B",), ())
    assert indexer.check().is_sound
    # They are remembered for more than one edition, and in a collection that is opened again.
    more = [replace(RENAMED[0], names={"en": "Grain crops"}), *RENAMED[1:]]
    indexer.update_vocabulary(Vocabulary(more))
    with Indexer.open(indexer.collection.path) as again:
        assert again.add(BY_NAME).unchanged == 2
        again.add([Document("d", "Crops", labels=("Cereal crops",), language="en")])
        assert labels(again)["d"] == (("A",), ())


@pytest.mark.parametrize("keep", [False, True])
def test_former_notations_resolve(tmp_path: Path, keep: bool) -> None:
    """Notations change with their places, and records carry them as labels."""
    old = Vocabulary([Concept("a", {"en": "Oats"}, notations=("A1", "A2")), Concept("b", {})])
    new = Vocabulary([Concept("a", {"en": "Oats"}, notations=("B1", "A2")), Concept("b", {})])
    record = Document("1", "Porridge", labels=("A1",), language="en")
    with Indexer.create(tmp_path / "c", old, language="en") as indexer:
        indexer.add([record])
        indexer.update_vocabulary(new)
        assert indexer.add([record], keep_unknown=keep).unchanged == 1
        indexer.add([replace(record, id="2")], keep_unknown=keep)
        assert labels(indexer) == {"1": (("a",), ()), "2": (("a",), ())}
        indexer.undo_vocabulary()
        assert labels(indexer) == {"1": (("a",), ()), "2": (("a",), ())}
        assert indexer.collection.former_names() == []


def test_present_names_precede_former_ones(indexer: Indexer) -> None:
    indexer.update_vocabulary(Vocabulary(RENAMED))
    taken = [*RENAMED, Concept("X", {"en": "Breakfast"}, {"en": ("Cereals",)})]
    indexer.update_vocabulary(Vocabulary(taken))
    indexer.add(BY_NAME)
    assert labels(indexer)["a"] == (("X", "B"), ())
    # A name that two headings had in earlier editions tells nothing.
    indexer.update_vocabulary(Vocabulary([*RENAMED, Concept("X", {"en": "Breakfast"})]))
    report = indexer.add([replace(BY_NAME[0], id="e")])
    assert report.unresolved == {"Cereals": 1}
    assert indexer.check().is_sound


def test_undo_forgets_the_names_of_the_undone_edition(indexer: Indexer) -> None:
    indexer.update_vocabulary(Vocabulary(RENAMED))
    added = [*BY_NAME, Document("c", "Crops", labels=("Cereal crops",), language="en")]
    indexer.add(added)
    indexer.undo_vocabulary()
    assert indexer.collection.former_names() == []
    assert {one: labels(indexer)[one][0] for one in "abc"} == {
        "a": ("A", "B"), "b": ("C",), "c": ("A",),
    }  # fmt: skip
    assert indexer.add(added).unresolved == {"Cereal crops": 1}


def test_undo_resolves_labels_again(indexer: Indexer) -> None:
    """Labels of documents that were added with names of the restored edition."""
    edition = [*OLD[1:], Concept("X", {"en": "Wheat"}), Concept("Y", {"en": "Cereals"})]
    edition += [Concept("Z", {"en": "Cereals"})]
    indexer.update_vocabulary(Vocabulary(edition))
    assert indexer.add(BY_NAME).ambiguous == {"Cereals": 1}
    report = indexer.undo_vocabulary()
    assert report.resolved == {"Cereals": 1}
    assert labels(indexer)["a"] == (("A", "B"), ())
    assert indexer.add(BY_NAME).unchanged == 2


def test_no_label_resolves_to_a_heading_of_an_undone_edition(indexer: Indexer) -> None:
    documents = [*DOCUMENTS, Document("m", "Seeds", labels=("M", "Panicum"), language="en")]
    indexer.add(documents)
    before = labels(indexer)
    first = indexer.update_vocabulary(Vocabulary(NEW))
    report = indexer.undo_vocabulary()
    assert counts(report) == {
        "restored": 4, "removed": 4, "renamed": 1, "moved": 1, "lost synonyms": 1,
    }  # fmt: skip
    assert report.unresolved == {"Millet": 1, "Sorghum": 1, "M": 1, "Panicum": 1}
    assert not any(one.successors or one.count for one in report.withdrawn)
    assert indexer.add(documents).unchanged == len(documents)
    assert labels(indexer) == before
    new = indexer.add([Document("n", "Seeds", labels=("N1", "Wort", "Dark loaf"), language="en")])
    assert new.unresolved == {"N1": 1, "Wort": 1}
    with pytest.raises(VocabularyError, match="'Millet' is unknown"):
        indexer.vocabulary.find("Millet")
    with pytest.raises(VocabularyError, match="'Panicums' is unknown in this vocabulary; try"):
        indexer.vocabulary.find("Panicums")
    assert indexer.vocabulary.search("Millet") == []
    assert indexer.vocabulary.candidates("Wort") == []
    assert indexer.vocabulary.search_page("").total == len(OLD)
    # The same update, again: its headings are new, and the same one is split.
    again = indexer.update_vocabulary(Vocabulary(NEW))
    assert again.changes == first.changes
    assert again.new_headings == first.new_headings
    assert labels(indexer)["m"] == (("M",), ())
    assert not any(concept.undone for concept in indexer.vocabulary)


def test_undo_counts_documents_by_the_labels_that_it_restores(indexer: Indexer) -> None:
    indexer.add([Document("old", "Grain", labels=("G", "D"), language="en")])
    edition = [replace(OLD[6], deprecated=False), *(one for one in NEW if one.id != "G")]
    indexer.update_vocabulary(Vocabulary(edition))
    assert labels(indexer)["old"] == (("G", "B"), ())
    report = indexer.undo_vocabulary()
    carried = [(one.id, one.documents, one.count) for one in report.withdrawn if one.count]
    assert carried == [("G", ("old",), 1)]
    assert report.withdrawn_documents == 1


def test_an_undone_heading_where_unknown_labels_are_kept(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add([Document("1", "Porridge", labels=("Breakfast",), language="en")])
        indexer.update_vocabulary(Vocabulary(OLD))
        indexer.undo_vocabulary()
        indexer.add([Document("2", "Oats", labels=("B", "Oats"), language="en")])
        assert labels(indexer)["2"] == (("B", "Oats"), ())
        assert indexer.check().is_sound


def test_a_label_revives_an_undone_heading(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        oats = Document("1", "Porridge of oats", labels=("Breakfast",), language="en")
        indexer.add([oats])
        indexer.update_vocabulary(Vocabulary([Concept("Avena", {"en": "Oats"})]))
        # Between update and undo: it keeps the heading, and is found by its name then.
        indexer.add([Document("2", "Rolled oats", labels=("Avena",), language="en")])
        indexer.undo_vocabulary()
        column = indexer.vocabulary.column("Avena")
        report = indexer.add([replace(oats, id=name, labels=("Avena", "Lunch")) for name in "34"])
        assert report.new_concepts == 2
        assert indexer.vocabulary.concept("Avena") == Concept("Avena", {"en": "Avena"})
        assert indexer.vocabulary.column("Avena") == column
        assert labels(indexer)["4"] == (("Avena", "Lunch"), ())
        (suggestions,) = indexer.suggest(
            [replace(oats, id="q")], settings=Settings.from_config(indexer.config, "knn")
        )
        assert "Avena" in [one.concept.id for one in suggestions]
        # The document that carried it has another name of a heading now, and nothing else.
        new, gone = indexer.snapshot().documents_since(indexer.snapshot().generation().number - 1)
        assert [*indexer.snapshot().ids_of(new.tolist()).values()] == ["3", "4"]
        assert not len(gone)
        (found,) = indexer.neighbours([Document("", "Avena", language="en")])
        assert {one.id for one in found} == {"2", "3", "4"}
        # Revived once; a label has brought it, so that an edition without it leaves it alone.
        assert indexer.add([replace(oats, id="5", labels=("Avena",))]).new_concepts == 0
        is_from_label = indexer.collection.columns_from_labels()
        assert {one.id for one in indexer.vocabulary if not one.undone} == {
            "Breakfast", "Avena", "Lunch",
        }  # fmt: skip
        assert [indexer.vocabulary[at].id for at in np.flatnonzero(is_from_label)] == [
            "Breakfast", "Avena", "Lunch",
        ]  # fmt: skip
        concepts = list(indexer.vocabulary)
        edition = Vocabulary([Concept("X", {"en": "Ships"})])
        assert not indexer.update_vocabulary(edition).withdrawn
        assert not indexer.vocabulary.concept("Avena").deprecated
        indexer.undo_vocabulary()
        assert list(indexer.vocabulary)[:-1] == concepts
        assert indexer.check().is_sound
        with indexer.collection.database.transaction() as connection:
            connection.execute("UPDATE revivals SET generation = 99")
        (found,) = (one for one in indexer.check().findings if one.state == "damaged")
        assert "a revived concept is not in the change log" in found.problem


def test_a_revision_counts_beside_a_revived_heading(tmp_path: Path) -> None:
    """The document moves, because the heading goes by another name; its revision is the new one."""
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add([Document("1", "Porridge", labels=("Breakfast",), language="en")])
        indexer.update_vocabulary(Vocabulary([Concept("Avena", {"en": "Oats"})]))
        oats = Document("2", "Rolled oats", labels=("Avena",), language="en", revision="1")
        indexer.add([oats])
        indexer.undo_vocabulary()
        indexer.add([replace(oats, revision="5")])
        assert not indexer.vocabulary.concept("Avena").undone
        report = indexer.add([replace(oats, title="Raw oats", revision="3")])
        assert (report.replaced, report.stale) == (0, 1)
        stored = next(one for one in indexer.documents() if one.id == "2")
        assert (stored.title, stored.revision) == ("Rolled oats", "5")


def test_an_update_is_undone_after_a_heading_was_revived(tmp_path: Path) -> None:
    """The generation that revives a heading is no edition: the one before can still be undone."""
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add([Document("1", "Porridge", labels=("Oatmeal",), language="en")])
        indexer.update_vocabulary(Vocabulary(OLD))
        indexer.undo_vocabulary()
        indexer.update_vocabulary(Vocabulary([Concept("Oatmeal", {"en": "Gruel"})]))
        with_snapshot = indexer.snapshot()
        indexer.add([Document("2", "Baking", labels=("C", "New"), language="en")])
        assert with_snapshot.vocabulary.concept("C").undone
        assert not indexer.snapshot().vocabulary.concept("C").undone
        indexer.undo_vocabulary()
        assert indexer.vocabulary.concept("Oatmeal").name() == "Oatmeal"
        assert not indexer.vocabulary.concept("C").undone
        assert not indexer.collection.former_names()
        assert indexer.check().is_sound


def test_undo_finds_documents_that_have_only_moved(indexer: Indexer) -> None:
    first = indexer.snapshot().generation().number
    documents = {one.id: one for one in DOCUMENTS}
    before = labels(indexer)
    indexer.update_vocabulary(Vocabulary(NEW))
    between = indexer.snapshot().generation().number
    # Other metadata alone, twice; and other labels, one of which the vocabulary lacks.
    indexer.add([replace(documents["malt"], metadata={"volume": 7})])
    indexer.add([replace(documents["malt"], metadata={"volume": 8})])
    indexer.correct([Correction("barley", ("B", "Millet", "Sorghum"))])
    report = indexer.undo_vocabulary()
    assert report.documents == 1
    after = labels(indexer)
    assert after["malt"] == before["malt"] == (("F",), ())
    assert after["barley"] == (("B", "M", "Sorghum"), ())
    assert next(one for one in indexer.documents() if one.id == "malt").metadata == {"volume": 8}

    def changed(since: int) -> list[list[str]]:
        new, gone = indexer.snapshot().documents_since(since)
        assert len(new) == len(gone)
        return sorted(indexer.snapshot().ids_of(new.tolist()).values())

    assert changed(first) == ["barley"]
    assert changed(between) == ["malt"]
    assert indexer.check().is_sound


def test_nothing_has_changed_after_an_update_and_its_undoing(indexer: Indexer) -> None:
    first = indexer.snapshot().generation().number
    indexer.update_vocabulary(Vocabulary(NEW))
    between = indexer.snapshot().generation().number
    indexer.undo_vocabulary()
    for since, count in ((first, 0), (between, 2)):
        new, gone = indexer.snapshot().documents_since(since)
        assert (len(new), len(gone)) == (count, count)
    indexer.update_vocabulary(Vocabulary(NEW))
    indexer.undo_vocabulary()
    assert not any(map(len, indexer.snapshot().documents_since(first)))


def test_records_that_only_have_other_metadata_have_not_changed(indexer: Indexer) -> None:
    first = indexer.snapshot().generation().number

    def changes() -> list[list[str]]:
        new, gone = indexer.snapshot().documents_since(first)
        assert len(np.intersect1d(new, gone)) == 0
        ids = [*indexer.snapshot().ids_of(new.tolist()).values()]
        return [sorted(ids), gone.tolist()]

    indexer.add([replace(DOCUMENTS[0], metadata={"volume": 7}, revision="2")])
    indexer.add([replace(DOCUMENTS[0], metadata={"volume": 8}, revision="3")])
    # The same headings in another order, one of them with another mark.
    indexer.add([replace(DOCUMENTS[1], labels=("B", "D", "Millet"), major_labels=("B",))])
    indexer.correct([Correction("bread", ("A", "C"))])
    assert len(indexer.snapshot().tombstones()) == 4
    assert changes() == [[], []]
    # Documents that move again because of another edition, and those that change after all.
    indexer.update_vocabulary(Vocabulary(RENAMED))
    assert changes() == [[], []]
    indexer.add([replace(DOCUMENTS[0], title="Porridge at noon")])
    indexer.correct([Correction("bread", ("A",))])
    indexer.add([Document("new", "Wheat", labels=("A",), metadata={"volume": 1}, language="en")])
    indexer.add([Document("new", "Wheat", labels=("A",), metadata={"volume": 2}, language="en")])
    assert changes() == [["bread", "new", "oats"], [0, 2]]
    assert indexer.check().is_sound


def test_an_update_between_two_batches(indexer: Indexer) -> None:
    """A writer resolves labels by the edition of the moment."""
    path = indexer.collection.path

    def documents() -> Iterator[Document]:
        for number in range(3000):
            if number == 1500:
                with Indexer.open(path) as other:
                    other.update_vocabulary(Vocabulary(NEW))
            yield Document(f"m{number}", "Seeds", labels=("Porridge oats",), language="en")

    report = indexer.add(documents())
    assert report.unresolved["Porridge oats"] + report.labels_resolved == 3000
    assert 0 < report.unresolved["Porridge oats"] <= 2000
    assert labels(indexer)["m2999"] == (("B",), ())


def test_an_open_snapshot_keeps_its_edition(indexer: Indexer) -> None:
    snapshot = indexer.snapshot()
    with Indexer.open(indexer.collection.path) as other:
        other.update_vocabulary(Vocabulary(NEW))
    assert list(snapshot.vocabulary) == OLD
    assert {one.id: one.labels for one in snapshot.documents()}["malt"] == ("F",)
    assert indexer.snapshot().vocabulary.concept("A").name() == "Cereal crops"


def generated(seed: int) -> tuple[list[Concept], list[Concept], list[Document]]:
    """Two editions that differ in every way, and documents."""
    chance = random.Random(seed)
    old = [
        Concept(
            f"c{number}",
            {"en": f"Name {number}"},
            {"en": tuple(f"Synonym {number} {one}" for one in range(chance.randrange(3)))},
            broader=(f"c{chance.randrange(40)}",),
        )
        for number in range(40)
    ]
    new: list[Concept] = []
    for concept in old:
        match chance.randrange(8):
            case 0:
                continue
            case 1:
                link = (f"c{chance.randrange(45)}",)
                new.append(replace(concept, deprecated=True, replaced_by=link))
            case 2:
                new.append(replace(concept, names={"en": f"{concept.name()} again"}))
            case 3:
                new.append(replace(concept, broader=()))
            case 4:
                taken = (f"Name {chance.randrange(40)}",)
                new.append(replace(concept, synonyms={"en": taken}))
            case _:
                new.append(concept)
    new += [Concept(f"n{number}", {"en": f"Name {chance.randrange(60)}"}) for number in range(8)]
    new = list({concept.id: concept for concept in new}.values())
    documents = [
        Document(
            f"d{number}",
            f"Text {number}",
            labels=(
                *(f"c{chance.randrange(40)}" for _ in range(3)),
                f"Name {chance.randrange(40, 60)}",
            ),
            language="en",
        )
        for number in range(60)
    ]
    return old, new, documents


@pytest.mark.parametrize("seed", range(5))
def test_generated_editions(tmp_path: Path, seed: int) -> None:
    old, new, documents = generated(seed)
    with Indexer.create(tmp_path / "c", Vocabulary(old), language="en") as indexer:
        indexer.add(documents)
        _, before = state(indexer)
        report = indexer.update_vocabulary(Vocabulary(new))
        vocabulary = indexer.vocabulary
        assert [concept.id for concept in vocabulary][: len(old)] == [one.id for one in old]
        in_use = {concept.id for concept in vocabulary if not concept.deprecated}
        assert in_use == {concept.id for concept in new if not concept.deprecated}
        withdrawn = {heading.id for heading in report.withdrawn}
        for of_one, _ in labels(indexer).values():
            assert {one for one in of_one if one in vocabulary} <= in_use | withdrawn
        # The same documents, resolved by the new edition, have the same labels.
        assert indexer.add(documents).unchanged == len(documents)
        assert not indexer.update_vocabulary(Vocabulary(new)).is_changed
        assert indexer.check().is_sound
        indexer.undo_vocabulary()
        concepts, after = state(indexer)
        assert after == before
        assert concepts[: len(old)] == old  # type: ignore[index]
        assert indexer.add(documents).unchanged == len(documents)
        assert indexer.check().is_sound


def test_models_stay_usable(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "c")
    queries = fresh_documents()
    with Indexer.open(tmp_path / "c") as indexer:
        methods = {"knn", "label-ae", "rerank"} & set(indexer.usable_methods())
        before = {method: suggested(indexer, queries, method) for method in methods}
        concepts = list(indexer.vocabulary)
        often = [indexer.vocabulary[column] for column in most_frequent(indexer, 4)]
        renamed, merged, into, removed = often
        edition = [
            replace(one, names={"en": "Quite another name"}) if one == renamed else one
            for one in concepts
            if one not in (merged, removed)
        ]
        place = edition.index(into)
        edition[place] = replace(into, synonyms={"en": (merged.name(),)})
        edition.append(Concept("brand-new", {"en": "Brand new heading"}))
        report = indexer.update_vocabulary(Vocabulary(edition))
        assert report.new_headings == ["brand-new"]
        assert report.new_to_models == dict.fromkeys(methods - {"knn"}, 1)
        assert report.followed[merged.id] > 0
        assert [one.id for one in report.withdrawn] == [removed.id]
        assert {"label-ae", "rerank"} & methods <= set(indexer.info().models)
        for method in methods:
            after = suggested(indexer, queries, method)
            assert all(after)
            known = {one for of_one in after for one in of_one}
            assert not known & {merged.id, removed.id}
            gone = {merged.id: into.id, removed.id: ""}
            expected = [{gone.get(one, one) for one in of_one} for of_one in before[method]]
            shared = sum(len(old & set(new)) for old, new in zip(expected, after, strict=True))
            assert shared >= 0.7 * sum(map(len, expected))
        indexer.undo_vocabulary()
        for method in methods:
            restored = suggested(indexer, queries, method)
            same = sum(old == new for old, new in zip(before[method], restored, strict=True))
            assert same >= len(queries) - 2


def suggested(indexer: Indexer, queries: list[Document], method: str) -> list[list[str]]:
    settings = Settings.from_config(indexer.config, method).changed(limit=6)
    answers = indexer.suggest(queries, settings=settings)
    return [sorted(one.concept.id for one in answer) for answer in answers]


def most_frequent(indexer: Indexer, count: int) -> list[int]:
    return indexer.label_frequencies().argsort(kind="stable")[::-1][:count].tolist()


def test_a_collection_of_an_earlier_format(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "fixtures" / "collection-0.1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    with Indexer.open(folder) as indexer:
        concepts, documents = state(indexer)
        edition = [
            replace(one, names={tag: f"{name}!" for tag, name in one.names.items()})
            for one in indexer.vocabulary
        ]
        assert indexer.update_vocabulary(Vocabulary(edition)).is_changed
        indexer.undo_vocabulary()
        assert state(indexer) == (concepts, documents)
        assert indexer.check().is_sound


# An edition that touches every document, so that there is time to be killed in.
KILLED_DOCUMENTS = 1000


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, Path]:
    """A collection, and the file of an edition by which all its headings are renamed or merged."""
    concepts = [Concept(f"c{number}", {"en": f"Heading {number}"}) for number in range(50)]
    folder, edition = tmp_path / "large", tmp_path / "edition.tsv"
    with Indexer.create(folder, Vocabulary(concepts), language="en") as indexer:
        indexer.add(
            Document(
                str(number), f"Text {number}", "word " * 200, language="en",
                labels=(f"c{number % 50}", f"c{number % 7}", "Heading 50"),
            )
            for number in range(KILLED_DOCUMENTS)
        )  # fmt: skip
    rows = ["id\tname\tdeprecated\treplaced_by"]
    for number in range(51):
        link = f"yes\tc{number + 1}" if number % 5 == 0 and number < 50 else "\t"
        rows.append(f"c{number}\tNew name {number}\t{link}")
    rows[-1] = "c50\tHeading 50\t\t"
    edition.write_text("\n".join(rows) + "\n")
    return folder, edition


def start_updating(folder: Path, edition: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "labelkin", "vocab", "update", str(folder), str(edition)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_updates(folder: Path, edition: Path, kills: int) -> None:
    with Indexer.open(folder) as indexer:
        old = state(indexer)
    started = time.monotonic()
    assert start_updating(folder, edition).wait() == 0
    needed = time.monotonic() - started
    with Indexer.open(folder) as indexer:
        new = state(indexer)
        indexer.undo_vocabulary()
        appended = [*old[0], replace(new[0][-1], deprecated=True, undone=True)]  # type: ignore[misc,index]
        old = (appended, old[1])
        assert state(indexer) == old
    chance = random.Random(0)
    for _ in range(kills):
        process = start_updating(folder, edition)
        time.sleep(needed * chance.uniform(0.5, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Indexer.open(folder) as indexer:
            now = state(indexer)
            assert now in (old, new)
            assert indexer.collection.count() == KILLED_DOCUMENTS
            if now == new:
                indexer.undo_vocabulary()
                assert state(indexer) == old
    with Indexer.open(folder) as indexer:
        assert indexer.check().is_sound


# Kills itself when this share of the documents is written, or (2) after the transaction.
KILLED = """
import os, signal, sys
from labelkin import Indexer, read_vocabulary

folder, edition, share = sys.argv[1], sys.argv[2], float(sys.argv[3])

def kill(done=1, total=1):
    if done >= share * total:
        os.kill(os.getpid(), signal.SIGKILL)

indexer = Indexer.open(folder)
indexer.update_vocabulary(read_vocabulary(edition), progress=kill)
share = 0
kill()
"""


@pytest.mark.parametrize("share", [0, 1, 2])
def test_killed_while_updating(large: tuple[Path, Path], share: int) -> None:
    folder, edition = large
    with Indexer.open(folder) as indexer:
        before = state(indexer)
    command = [sys.executable, "-c", KILLED, str(folder), str(edition), str(share)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with Indexer.open(folder) as indexer:
        if share < 2:
            assert state(indexer) == before
            assert indexer.update_vocabulary(read_vocabulary(edition)).is_changed
        assert indexer.vocabulary.concept("c1").name() == "New name 1"
        assert indexer.collection.count() == KILLED_DOCUMENTS
        assert indexer.check().is_sound


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_killed_many_times_while_updating(large: tuple[Path, Path]) -> None:
    kill_updates(*large, kills=20)


def test_readers_go_on_and_see_the_new_edition(large: tuple[Path, Path]) -> None:
    folder, edition = large
    query = Document("", "Text 3", "word", language="en")
    names: list[set[str]] = []
    is_over = threading.Event()
    with Indexer.open(folder, follow=True) as reader:

        def ask() -> None:
            while not is_over.is_set():
                names.append({one.concept.name() for one in reader.suggest([query])[0]})

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            assert start_updating(folder, edition).wait() == 0
            deadline = time.monotonic() + 10
            while not any(name.startswith("New") for name in names[-1]):
                assert time.monotonic() < deadline
                time.sleep(0.01)
        finally:
            is_over.set()
            thread.join()
    # Every answer is of one edition.
    old = [all(not name.startswith("New") for name in answer) for answer in names]
    assert old == sorted(old, reverse=True)
    assert all(names)
