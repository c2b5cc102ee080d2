from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelkin.corpus import Document, read_corpus, write_corpus
from labelkin.corpus.split import (
    HashRule,
    SplitReport,
    SplitRule,
    hash_rule,
    split_corpus,
    year_rule,
)
from labelkin.exceptions import InputError

Write = Callable[[str, str | bytes], Path]

WORDS = "rye oats barley malt loaf dough flour crust oven seed field mill".split()
DOCUMENTS = st.lists(
    st.builds(
        Document,
        id=st.text("abcdef0123", min_size=1, max_size=3),
        title=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
        labels=st.lists(st.sampled_from("uvwxyz"), unique=True, max_size=3).map(tuple),
        metadata=st.sampled_from([{}, {"year": 2015}, {"year": 2018}, {"year": "2020 Jan"}]),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda document: document.id,
)
RULES = st.sampled_from(
    [
        hash_rule(),
        hash_rule("a:0.5,b:0.5", seed=3),
        HashRule.in_folds(3),
        year_rule("train:-2016,test:2017-2018"),
    ]
)


def split(
    documents: Sequence[Document], folder: Path, rule: SplitRule, **options: Any
) -> tuple[SplitReport, dict[str, list[Document]]]:
    """The report, and what the files hold that it names."""
    for old in folder.glob("parts/*"):
        old.unlink()
    write_corpus(documents, folder / "all.jsonl")
    corpus = read_corpus(folder / "all.jsonl", format="jsonl")
    report = split_corpus(corpus, folder / "parts", rule, **options)
    parts = {
        name: list(read_corpus(folder / "parts" / part.file, format="jsonl").documents())
        if part.documents
        else []
        for name, part in report.parts.items()
    }
    assert json.loads((folder / "parts" / "split.json").read_text()) == report.to_json()
    return report, parts


def part_of_each(parts: dict[str, list[Document]]) -> dict[str, str]:
    return {document.id: name for name, documents in parts.items() for document in documents}


def quick(test: Callable[..., None]) -> Callable[..., None]:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=20, suppress_health_check=checks)(test)


@quick
@given(documents=DOCUMENTS, rule=RULES, keep=st.sampled_from([None, "near-duplicates"]))
def test_a_split_is_a_partition_in_order(
    documents: list[Document], rule: SplitRule, keep: str | None, tmp_path: Path
) -> None:
    report, parts = split(documents, tmp_path, rule, keep_together=keep)
    assert sorted(one.id for part in parts.values() for one in part) == sorted(
        one.id for one in documents
    )
    for name, part in parts.items():
        assert part == [one for one in documents if one in part]
        assert report.parts[name].documents == len(part)
        assert report.parts[name].labels.total() == sum(len(one.labels) for one in part)


@quick
@given(
    documents=DOCUMENTS, rule=RULES, keep=st.sampled_from([None, "near-duplicates"]), data=st.data()
)
def test_the_order_of_the_input_does_not_matter(
    documents: list[Document],
    rule: SplitRule,
    keep: str | None,
    data: st.DataObject,
    tmp_path: Path,
) -> None:
    _, before = split(documents, tmp_path, rule, keep_together=keep)
    _, after = split(data.draw(st.permutations(documents)), tmp_path, rule, keep_together=keep)
    assert part_of_each(before) == part_of_each(after)


@quick
@given(documents=DOCUMENTS, rule=RULES, data=st.data())
def test_new_documents_move_no_others(
    documents: list[Document], rule: SplitRule, data: st.DataObject, tmp_path: Path
) -> None:
    _, all_parts = split(documents, tmp_path, rule)
    fewer = documents[: data.draw(st.integers(1, len(documents)))]
    _, parts = split(fewer, tmp_path, rule)
    assert part_of_each(parts).items() <= part_of_each(all_parts).items()


@quick
@given(documents=DOCUMENTS, rule=RULES, threshold=st.sampled_from([0.4, 0.8]))
def test_groups_never_cross_parts(
    documents: list[Document], rule: SplitRule, threshold: float, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"keep_together": "near-duplicates", "threshold": threshold}
    _, parts = split(documents, tmp_path, rule, **options)
    where = part_of_each(parts)
    for one in documents:
        for other in documents:
            shared = set(shingles(one.title)) & set(shingles(other.title))
            every = set(shingles(one.title)) | set(shingles(other.title))
            if len(shared) / len(every) >= threshold:
                assert where[one.id] == where[other.id]


def shingles(text: str) -> list[tuple[str, ...]]:
    words = text.split()
    return [*((word,) for word in words), *itertools.pairwise(words)]


def test_shares_of_many() -> None:
    rule = hash_rule("train:0.7,dev:0.1,test:0.2", seed=5)
    parts = [rule.part(rule.value(Document(str(number)))) for number in range(20_000)]
    assert [parts.count(name) / len(parts) for name in rule.names] == pytest.approx(
        [0.7, 0.1, 0.2], abs=0.01
    )


def test_shares_of_groups_are_the_same(tmp_path: Path) -> None:
    # The smallest of four random numbers is mostly below 0.2: it must not decide.
    documents = [Document(f"{n}-{m}", f"text {n}") for n in range(2000) for m in range(4)]
    report, _ = split(documents, tmp_path, hash_rule("a:0.5,b:0.5"), keep_together="same-text")
    assert report.parts["a"].documents == pytest.approx(4000, abs=250)
    assert report.together is not None
    assert (report.together.groups, report.together.documents, report.together.largest) == (
        2000,
        8000,
        4,
    )
    assert report.together.divided == pytest.approx(1750, abs=60)


def test_years(tmp_path: Path) -> None:
    years = [1999, "2015", "2018 Mar-Apr", 2019, "", None, "19991"]
    documents = [
        Document(str(number), f"t{number}", metadata={"year": year} if year is not None else {})
        for number, year in enumerate(years)
    ]
    _, parts = split(documents, tmp_path, year_rule("train:-2017,dev:2018,test:2020-"))
    assert {name: [one.id for one in part] for name, part in parts.items()} == {
        "train": ["0", "1"],
        "dev": ["2"],
        "test": [],
        "rest": ["3", "4", "5", "6"],
    }


def test_groups_go_with_their_latest_year(tmp_path: Path) -> None:
    documents = [
        Document("1", "same words", metadata={"year": 2010}),
        Document("2", "Same words.", metadata={"year": 2019}),
        Document("3", "other", metadata={"year": 2010}),
    ]
    rule = year_rule("train:-2017,test:2018-")
    report, parts = split(documents, tmp_path, rule, keep_together="near-duplicates")
    assert [one.id for one in parts["test"]] == ["1", "2"]
    assert report.together is not None
    assert report.together.divided == 1


def test_revisions_of_a_record_stay_together(tmp_path: Path) -> None:
    documents = [
        Document("1", "first words", metadata={"year": 2010}),
        Document("1", "quite different now", metadata={"year": 2019}),
    ]
    _, parts = split(
        documents, tmp_path, year_rule("train:-2017,test:2018-"), keep_together="same-text"
    )
    assert len(parts["test"]) == 2


def test_unseen_labels(tmp_path: Path) -> None:
    rows = [(2010, "ab"), (2010, "b"), (2019, "ac"), (2019, "cd")]
    documents = [
        Document(str(n), f"t{n}", labels=tuple(labels), metadata={"year": year})
        for n, (year, labels) in enumerate(rows)
    ]
    report, _ = split(documents, tmp_path, year_rule("train:-2017,test:2018-"))
    test = report.parts["test"].to_json()
    assert (test["distinct_labels"], test["label_occurrences"]) == (3, 4)
    assert (test["unseen_labels"], test["unseen_label_occurrences"]) == (2, 3)
    assert report.parts["train"].unseen_labels == 0


def test_labels_of_a_fold_are_compared_with_all_others(tmp_path: Path) -> None:
    documents = [Document(str(n), f"t{n}", labels=("a", f"own{n}")) for n in range(30)]
    report, _ = split(documents, tmp_path, HashRule.in_folds(3))
    for part in report.parts.values():
        assert part.unseen_labels == part.unseen_occurrences == part.documents


@pytest.mark.parametrize(
    ("format", "ending"), [("csv", ".csv"), ("annif-tsv", ".tsv"), ("json", ".json")]
)
def test_formats(format: str, ending: str, tmp_path: Path) -> None:
    documents = [Document(str(n), f"text {n}", labels=("a",)) for n in range(20)]
    write_corpus(documents, tmp_path / "c.jsonl")
    report = split_corpus(
        read_corpus(tmp_path / "c.jsonl"), tmp_path / "out", hash_rule(), format=format, gzip=True
    )
    train = report.parts["train"]
    assert train.file == f"train{ending}.gz"
    assert len(list(read_corpus(tmp_path / "out" / train.file).documents())) == train.documents


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ("train:0.8", "two or more"),
        ("a:0.5,a:0.5", "names of their own"),
        ("a:0.5,b:0.6", "add up to 1, not to 1.1"),
        ("a:1.5,b:-0.5", "above 0"),
        ("a:nan,b:0.5", "above 0"),
        ("a:x,b:0.5", "'x'"),
        ("../a:0.5,b:0.5", "cannot be the name"),
        ("split:0.5,b:0.5", "cannot be the name"),
        ("a:0.5,:0.5", "cannot be the name"),
    ],
)
def test_bad_shares(parts: str, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        hash_rule(parts)


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ("a:2010,b:", "no years"),
        ("a:-,b:2010", "no years"),
        ("a:20100,b:2010", "no years"),
        ("a:2010-2005,b:2011", "2005-2010"),
        ("a:-2010,b:2010-", "2010 is in two parts"),
        ("a:2010,b:2000-2020", "in two parts"),
    ],
)
def test_bad_years(parts: str, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        year_rule(parts)


def test_nothing_is_overwritten_or_left_behind(write: Write, tmp_path: Path) -> None:
    source = write("c.jsonl", '{"id": "1", "title": "x"}\n')
    (tmp_path / "old").mkdir()
    write("old/notes.txt", "mine")
    with pytest.raises(InputError, match="not empty"):
        split_corpus(read_corpus(source), tmp_path / "old", hash_rule())
    bad = write("bad.jsonl", "{broken\n")
    with pytest.raises(InputError, match="no document could be read"):
        split_corpus(read_corpus(bad), tmp_path / "new", hash_rule())
    assert not (tmp_path / "new").exists()
    (tmp_path / "hidden").mkdir()
    write("hidden/.notes", "mine")
    with pytest.raises(InputError, match="not empty"):
        split_corpus(read_corpus(source), tmp_path / "hidden", hash_rule())
    (tmp_path / "killed").mkdir()
    write("killed/.train.jsonl.7-0a.part", "{")
    assert split_corpus(read_corpus(source), tmp_path / "killed", hash_rule()).documents == 1


@pytest.mark.parametrize("years", [(2001, 2019, 2010), (2019, 2001, 2010)])
def test_the_same_id_is_in_the_part_of_its_latest_year(
    years: tuple[int, ...], tmp_path: Path
) -> None:
    revisions = [Document("r", f"Rye {year}", metadata={"year": year}) for year in years]
    others = [Document("a", "Barley", metadata={"year": 2001}), Document("b", "Oats")]
    rule = year_rule("train:-2009,dev:2010,test:2011-")
    report, parts = split([*revisions, *others], tmp_path, rule)
    assert {name: [one.id for one in part] for name, part in parts.items()} == {
        "train": ["a"],
        "dev": [],
        "test": ["r", "r", "r"],
        "rest": ["b"],
    }
    assert report.together is None


def test_a_file_that_changes_between_the_passes(write: Write, tmp_path: Path) -> None:
    lines = [f'{{"id": "{number}", "title": "text {number}"}}\n' for number in range(5)]
    source = write("c.jsonl", "".join(lines))

    def change(step: str, *_: object) -> None:
        if step == "Comparing":
            source.write_text("".join(lines[:3]))

    with pytest.raises(InputError, match="changed while it was read"):
        split_corpus(
            read_corpus(source),
            tmp_path / "out",
            hash_rule(),
            keep_together="near-duplicates",
            progress=change,
        )
    assert not list((tmp_path / "out").iterdir())


def test_problems_are_logged_once(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = write("c.jsonl", '{"id": "1", "title": "x"}\n{broken\n{"id": "2", "title": "y"}\n')
    corpus = read_corpus(source)
    split_corpus(corpus, tmp_path / "out", hash_rule(), keep_together="same-text")
    assert sum("record skipped" in message for message in caplog.messages) == 1
    assert corpus.report.skipped == 1
