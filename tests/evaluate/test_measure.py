from __future__ import annotations

import pytest

from labelkin.evaluate import DEFAULT_MEASURES, parse_measure, registered_families
from labelkin.evaluate.measure import Family, mean_of_documents, register
from labelkin.exceptions import ConfigError


@pytest.mark.parametrize(
    "name", ["MiF", "P@5", "nDCG@10", "PSP@5", "PSP(A=0.6,B=2.6)@3", "hF(distance=1000000)"]
)
def test_a_name_parses_to_what_prints_it(name: str) -> None:
    assert parse_measure(name).name == name
    assert str(parse_measure(name)) == name


def test_every_family_parses_from_its_pattern() -> None:
    for family in registered_families():
        measure = parse_measure(family.pattern.replace("@k", "@7"))
        assert measure.family is family
        assert parse_measure(measure.name) == measure
        assert measure.definition.endswith(".")
        assert ("k" in measure.parameters) == family.has_depth


def test_measures_are_values() -> None:
    assert parse_measure("P@5") == parse_measure(" P@5 ")
    assert parse_measure("P@5") != parse_measure("P@6")
    assert parse_measure("P@5") != parse_measure("R@5")
    assert len({parse_measure("PSP@5"), parse_measure("PSP(B=1.5,A=0.55)@5")}) == 1


def test_parameters_include_defaults() -> None:
    assert parse_measure("PSP(A=0.6)@3").parameters == {"k": 3, "A": 0.6, "B": 1.5}
    assert parse_measure("MiF").parameters == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mif", "did you mean MiF"),
        ("NDCG@10", r"nDCG@k"),
        ("xyzzy", "known: MiP"),
        ("", "known: MiP"),
        ("P", "needs a depth of at least 1: P@5"),
        ("P@0", "needs a depth of at least 1"),
        ("P@-1", "unknown measure"),
        ("MiF@5", "takes no depth"),
        ("MiF(A=1)", "no parameter 'A'"),
        ("PSP(A=much)@5", "A must be a number of at least 0, not 'much'"),
        ("hF(distance=-1)", "distance must be a number of at least 0"),
        ("hF(distance=inf)", "distance must be a number of at least 0"),
    ],
)
def test_a_bad_name_says_what_to_write(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_measure(name)


def test_a_name_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="already registered"):
        register(Family("MiF", "Another.", mean_of_documents))


def test_default_measures_have_distinct_names() -> None:
    names = [measure.name for measure in DEFAULT_MEASURES]
    assert len(set(names)) == len(names)
    assert {"MiF", "MaF", "EBF", "nDCG@10"} <= set(names)
