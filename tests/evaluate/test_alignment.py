from __future__ import annotations

import pytest

from labelkin.evaluate import evaluate, parse_measure
from labelkin.evaluate.alignment import align
from labelkin.evaluate.label_file import LabelFile, place
from labelkin.exceptions import InputError
from labelkin.vocab import Vocabulary


def label_file(labels: dict[str, list[str]], path: str = "p", **rest: object) -> LabelFile:
    file = LabelFile(path, **rest)  # type: ignore[arg-type]
    for document, given in labels.items():
        file.add_ordered(document, given)
    return file


def test_values() -> None:
    gold = label_file({"1": ["1", "2", "3"], "2": ["1", "4", "5"], "3": ["2", "4"]})
    (aligned,), columns = align(gold, [label_file({"1": ["1"], "2": ["2", "4"], "3": ["2", "4"]})])
    assert sorted(columns.described()) == [(label, "") for label in "12345"]
    values = evaluate(aligned.evaluation, [parse_measure("MiF"), parse_measure("EBF")])
    assert values == {"MiF": pytest.approx(0.6153846), "EBF": pytest.approx(0.6333333)}
    assert (aligned.missing, aligned.strangers, aligned.shared, aligned.by_place) == (
        [],
        [],
        3,
        False,
    )


def test_documents_without_gold_labels_do_not_count() -> None:
    gold = label_file({"a": ["x"], "b": [], "c": ["y"]})
    (aligned,), _ = align(gold, [label_file({"a": ["x"], "b": ["x"], "d": ["x"]})])
    assert aligned.evaluation.documents == 2
    assert aligned.missing == ["c"]
    assert aligned.strangers == ["b", "d"]
    with pytest.raises(InputError, match="g: no document with labels"):
        align(label_file({"a": []}, "g"), [label_file({"a": ["x"]})])


def test_by_place() -> None:
    gold = label_file({"a": ["x"], "b": [], "c": ["y"]}, "g")
    lines = label_file({"1": ["x"], "2": ["z"], "3": ["x", "y"]}, "p", has_ids=False)
    (aligned,), _ = align(gold, [lines])
    assert aligned.by_place
    assert (aligned.missing, aligned.strangers) == ([], ["2"])
    assert parse_measure("MiR").value(aligned.evaluation) == 1
    with pytest.raises(InputError, match=r"p: the number of documents \(1\) differs from g \(3\)"):
        align(gold, [label_file({"1": ["x"]}, has_ids=False)])
    with pytest.raises(
        InputError, match="p: none of its documents is in g; ids look like '7' here"
    ):
        align(gold, [label_file({"7": ["x"], "8": ["x"], "9": ["x"]})])


def test_generated_ids_are_used_if_all_match() -> None:
    gold = label_file({"x:1-aa": ["A"], "x:2-bb": ["B"]}, has_ids=False)
    more = label_file({"x:2-bb": ["B"], "y:1-cc": ["C"], "x:1-aa": ["A"]})
    (aligned,), _ = align(gold, [more])
    assert (aligned.by_place, aligned.strangers) == (False, ["y:1-cc"])
    assert parse_measure("MiF").value(aligned.evaluation) == 1
    # The same file name with other texts.
    titles = label_file({"x:1-aa": ["A"], "x:2-dd": ["B"]}, has_ids=False)
    (aligned,), _ = align(gold, [titles])
    assert aligned.by_place
    assert parse_measure("MiF").value(aligned.evaluation) == 1


def test_missing_lines_are_an_error() -> None:
    three = label_file({place(n): ["A"] for n in (1, 2, 3)}, has_ids=False)
    two = label_file({place(n): ["A"] for n in (1, 2)}, has_ids=False)
    for gold, predicted in ((three, two), (two, three)):
        with pytest.raises(InputError, match="cannot be matched"):
            align(gold, [predicted])
    (aligned,), _ = align(three, [three])
    assert aligned.by_place


def test_matrices_of_different_widths() -> None:
    gold = label_file({place(1): ["1"]}, has_ids=False, width=5)
    with pytest.raises(InputError, match="matrices differ in width: 4 and 5 columns"):
        align(gold, [label_file({place(1): ["1"]}, has_ids=False, width=4)])


def test_places_are_not_taken_for_ids() -> None:
    gold = label_file({"#2": ["A"], "0": ["B"], "#1": ["C"]})
    lines = label_file({place(1): ["A"], place(2): ["B"], place(3): ["C"]}, has_ids=False)
    for one, other in ((gold, lines), (lines, gold)):
        (aligned,), _ = align(one, [other])
        assert aligned.by_place
        assert parse_measure("MiF").value(aligned.evaluation) == 1


def test_without_a_vocabulary_labels_match_by_name() -> None:
    gold = label_file({"a": ["Oats", "Rye"], "b": ["Oats"]})
    named = label_file(
        {"a": ["V1", "V9"], "b": ["V2"]}, names={"V1": "Oats", "V2": "Rye", "V9": "Hops"}
    )
    plain = label_file({"a": ["V1"], "b": ["Oats"]})
    (by_name, by_id), columns = align(gold, [named, plain])
    assert (by_name.shared, by_id.shared) == (2, 1)
    assert parse_measure("MiP").value(by_name.evaluation) == pytest.approx(1 / 3)
    assert dict(columns.described()) == {"Oats": "Oats", "Rye": "Rye", "V9": "Hops", "V1": ""}
    (turned,), _ = align(
        label_file({"a": ["V1"]}, names={"V1": "Oats"}), [label_file({"a": ["Oats"]})]
    )
    assert turned.shared == 1


def test_with_a_vocabulary_ids_names_and_synonyms_match(vocabulary: Vocabulary) -> None:
    gold = label_file({"a": ["Bread, Rye", "oats"], "b": ["V1"], "c": ["Hops"]})
    first = label_file({"a": ["V2", "Rye Bread", "V3"], "b": ["bread"], "c": ["Hops"]})
    (aligned,), columns = align(gold, [first], vocabulary)
    assert [aligned.evaluation.predicted[n][0].tolist() for n in range(3)] == [[1, 2], [0], [5]]
    assert parse_measure("MiF").value(aligned.evaluation) == 1
    assert parse_measure("hF").value(aligned.evaluation) == 1
    assert columns.described()[1] == ("V2", "Bread, Rye")
    assert columns.described()[5] == ("Hops", "")


def test_columns_of_a_matrix_are_those_of_the_vocabulary(vocabulary: Vocabulary) -> None:
    gold = label_file({"a": ["Bread"], "b": ["Oats"]})
    matrix = label_file({"1": ["0"], "2": ["2"]}, "m", has_ids=False, width=5)
    (aligned,), _ = align(gold, [matrix], vocabulary)
    assert parse_measure("MiF").value(aligned.evaluation) == 1
    other = label_file({"1": ["0"], "2": ["2"]}, "m", has_ids=False, width=6)
    with pytest.raises(
        InputError, match="m: the matrix has 6 columns, but the vocabulary has 5 concepts; "
    ):
        align(gold, [other], vocabulary)
