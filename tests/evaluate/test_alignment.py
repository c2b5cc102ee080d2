from __future__ import annotations

import pytest

from labelkin.evaluate import evaluate, parse_measure
from labelkin.evaluate.alignment import align
from labelkin.evaluate.label_file import LabelFile, place
from labelkin.exceptions import InputError
from labelkin.vocab import Vocabulary


def made(labels: dict[str, list[str]], path: str = "p", **rest: object) -> LabelFile:
    file = LabelFile(path, **rest)  # type: ignore[arg-type]
    for document, given in labels.items():
        file.add_ordered(document, given)
    return file


def test_values() -> None:
    gold = made({"1": ["1", "2", "3"], "2": ["1", "4", "5"], "3": ["2", "4"]})
    (found,), columns = align(gold, [made({"1": ["1"], "2": ["2", "4"], "3": ["2", "4"]})])
    assert sorted(columns.described()) == [(label, "") for label in "12345"]
    values = evaluate(found.evaluation, [parse_measure("MiF"), parse_measure("EBF")])
    assert values == {"MiF": pytest.approx(0.6153846), "EBF": pytest.approx(0.6333333)}
    assert (found.missing, found.strangers, found.shared, found.by_place) == ([], [], 3, False)


def test_documents_without_gold_labels_do_not_count() -> None:
    gold = made({"a": ["x"], "b": [], "c": ["y"]})
    (found,), _ = align(gold, [made({"a": ["x"], "b": ["x"], "d": ["x"]})])
    assert found.evaluation.documents == 2
    assert found.missing == ["c"]
    assert found.strangers == ["b", "d"]
    with pytest.raises(InputError, match="g: no document with labels"):
        align(made({"a": []}, "g"), [made({"a": ["x"]})])


def test_by_place() -> None:
    gold = made({"a": ["x"], "b": [], "c": ["y"]}, "g")
    lines = made({"1": ["x"], "2": ["z"], "3": ["x", "y"]}, "p", has_ids=False)
    (found,), _ = align(gold, [lines])
    assert found.by_place
    assert (found.missing, found.strangers) == ([], ["2"])
    assert parse_measure("MiR").value(found.evaluation) == 1
    with pytest.raises(InputError, match="p: documents here 1, in g 3; without ids"):
        align(gold, [made({"1": ["x"]}, has_ids=False)])
    with pytest.raises(
        InputError, match="p: none of its documents is in g; ids look like '7' here"
    ):
        align(gold, [made({"7": ["x"], "8": ["x"], "9": ["x"]})])


def test_made_up_ids_do_if_all_are_found() -> None:
    gold = made({"x:1-aa": ["A"], "x:2-bb": ["B"]}, has_ids=False)
    more = made({"x:2-bb": ["B"], "y:1-cc": ["C"], "x:1-aa": ["A"]})
    (found,), _ = align(gold, [more])
    assert (found.by_place, found.strangers) == (False, ["y:1-cc"])
    assert parse_measure("MiF").value(found.evaluation) == 1
    # The same file name with other texts.
    titles = made({"x:1-aa": ["A"], "x:2-dd": ["B"]}, has_ids=False)
    (found,), _ = align(gold, [titles])
    assert found.by_place
    assert parse_measure("MiF").value(found.evaluation) == 1


def test_lines_that_are_lost_are_noticed() -> None:
    three = made({place(n): ["A"] for n in (1, 2, 3)}, has_ids=False)
    two = made({place(n): ["A"] for n in (1, 2)}, has_ids=False)
    for gold, predicted in ((three, two), (two, three)):
        with pytest.raises(InputError, match="cannot be matched"):
            align(gold, [predicted])
    (found,), _ = align(three, [three])
    assert found.by_place


def test_matrices_of_different_widths() -> None:
    gold = made({place(1): ["1"]}, has_ids=False, width=5)
    with pytest.raises(InputError, match="matrices of 4 and 5 columns"):
        align(gold, [made({place(1): ["1"]}, has_ids=False, width=4)])


def test_places_are_not_taken_for_ids() -> None:
    gold = made({"#2": ["A"], "0": ["B"], "#1": ["C"]})
    lines = made({place(1): ["A"], place(2): ["B"], place(3): ["C"]}, has_ids=False)
    for one, other in ((gold, lines), (lines, gold)):
        (found,), _ = align(one, [other])
        assert found.by_place
        assert parse_measure("MiF").value(found.evaluation) == 1


def test_without_a_vocabulary_names_may_meet() -> None:
    gold = made({"a": ["Oats", "Rye"], "b": ["Oats"]})
    named = made({"a": ["V1", "V9"], "b": ["V2"]}, names={"V1": "Oats", "V2": "Rye", "V9": "Hops"})
    plain = made({"a": ["V1"], "b": ["Oats"]})
    (by_name, by_id), columns = align(gold, [named, plain])
    assert (by_name.shared, by_id.shared) == (2, 1)
    assert parse_measure("MiP").value(by_name.evaluation) == pytest.approx(1 / 3)
    assert dict(columns.described()) == {"Oats": "Oats", "Rye": "Rye", "V9": "Hops", "V1": ""}
    (turned,), _ = align(made({"a": ["V1"]}, names={"V1": "Oats"}), [made({"a": ["Oats"]})])
    assert turned.shared == 1


def test_with_a_vocabulary_ids_names_and_synonyms_meet(vocabulary: Vocabulary) -> None:
    gold = made({"a": ["Bread, Rye", "oats"], "b": ["V1"], "c": ["Hops"]})
    first = made({"a": ["V2", "Rye Bread", "V3"], "b": ["bread"], "c": ["Hops"]})
    (found,), columns = align(gold, [first], vocabulary)
    assert [found.evaluation.predicted[n][0].tolist() for n in range(3)] == [[1, 2], [0], [5]]
    assert parse_measure("MiF").value(found.evaluation) == 1
    assert parse_measure("hF").value(found.evaluation) == 1
    assert columns.described()[1] == ("V2", "Bread, Rye")
    assert columns.described()[5] == ("Hops", "")


def test_columns_of_a_matrix_are_those_of_the_vocabulary(vocabulary: Vocabulary) -> None:
    gold = made({"a": ["Bread"], "b": ["Oats"]})
    matrix = made({"1": ["0"], "2": ["2"]}, "m", has_ids=False, width=5)
    (found,), _ = align(gold, [matrix], vocabulary)
    assert parse_measure("MiF").value(found.evaluation) == 1
    other = made({"1": ["0"], "2": ["2"]}, "m", has_ids=False, width=6)
    with pytest.raises(InputError, match="m: a matrix of 6 columns, but the vocabulary has 5"):
        align(gold, [other], vocabulary)
