from __future__ import annotations

import pytest

from labelkin.corpus import Document
from labelkin.exceptions import WrongKindError
from labelkin.vocab import Vocabulary
from labelkin.vocab.agreement import check_labels, label_separator_of


def labelled(*labels: str) -> list[Document]:
    return [Document(f"d{n}", "x", labels=(label,)) for n, label in enumerate(labels)]


FOREIGN = [f"heading {n}" for n in range(20)]


def test_labels_of_another_vocabulary(vocabulary: Vocabulary) -> None:
    with pytest.raises(WrongKindError, match=r"none of the first 20 labels.*'heading 0'.*--force"):
        check_labels(labelled(*FOREIGN), vocabulary, "|")


def test_one_known_label_is_enough(vocabulary: Vocabulary) -> None:
    check_labels(labelled(*FOREIGN, "Oats"), vocabulary, "|")


def test_a_few_unknown_labels_and_an_empty_vocabulary_pass(vocabulary: Vocabulary) -> None:
    check_labels(labelled("Wheat", "Millet"), vocabulary, "|")
    check_labels(labelled(*FOREIGN), Vocabulary(), "|")
    check_labels([Document("1", "x")], vocabulary, "|")


def test_lists_that_were_not_split(vocabulary: Vocabulary) -> None:
    joined = [f"Oats; Barley; extra {n}" for n in range(12)]
    with pytest.raises(WrongKindError, match="--label-separator ';'"):
        check_labels(labelled(*joined), vocabulary, "|")


@pytest.mark.parametrize(
    ("unresolved", "separator"),
    [
        (["Oats; Barley"], ";"),
        (["Oats|Bread", "Millet"], "|"),
        (["Oats, Barley", "Barley, Bread"], ","),
        # Most labels have the character, though no part is known.
        (["cats; dogs", "mice; rats"], ";"),
        (["Sorghum", "Millet; wild", "Teff", "Fonio"], None),
        # A comma is part of many a name.
        (["Sorghum", "Oats, Barley", "Teff", "Fonio"], None),
        (["Neoplasms, Hepatic", "Teff, Wild"], None),
        (["Sorghum"], None),
    ],
)
def test_separators(unresolved: list[str], separator: str | None, vocabulary: Vocabulary) -> None:
    assert label_separator_of(unresolved, vocabulary, "/") == separator


def test_the_separator_in_use_is_not_proposed(vocabulary: Vocabulary) -> None:
    assert label_separator_of(["Oats; Barley"], vocabulary, ";") is None
