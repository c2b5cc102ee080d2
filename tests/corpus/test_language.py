from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from labelkin.corpus.language import (
    DETECTED_LANGUAGES,
    clear_language,
    detect_language,
    normalise_language,
    usual_languages,
)


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("eng", "en"),
        ("ger", "de"),
        ("deu", "de"),
        ("en-GB", "en"),
        ("PT", "pt"),
        ("pt_BR", "pt"),
        ("", None),
        ("not a language", None),
        ("12", None),
    ],
)
def test_normalise(tag: str, code: str | None) -> None:
    assert normalise_language(tag) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The river carries more water in the spring than anybody had thought.", "en"),
        ("Der Fluss führt im Frühling mehr Wasser, als man gedacht hatte.", "de"),
        ("El río lleva más agua en primavera de lo que nadie había pensado.", "es"),
        ("Весной в реке больше воды, чем кто-либо думал.", "ru"),
        ("   ", None),
    ],
)
def test_detect(text: str, code: str | None) -> None:
    assert detect_language(text) == code


@pytest.mark.parametrize(
    ("text", "alone", "expected", "code"),
    [
        # Finnish titles that look like another language by themselves.
        ("Uusi maailma", "et", ("fi", "en"), "fi"),
        ("Talous", "cs", ("fi", "en"), "fi"),
        # Strong evidence needs no expectation.
        ("Der Fluss führt im Frühling mehr Wasser, als man dachte.", "de", ("fi", "en"), "de"),
        ("Весной в реке больше воды.", "ru", ("fi",), "ru"),
        # Nothing to decide by: the most frequent language.
        ("1914-1918", None, ("sv", "fi"), "sv"),
        ("1914-1918", None, (), None),
        ("", None, ("fi",), None),
        # Languages that cannot be detected are never expected.
        ("Der Fluss führt im Frühling mehr Wasser.", "de", ("la",), "de"),
    ],
)
def test_expected_languages_are_preferred(
    text: str, alone: str | None, expected: tuple[str, ...], code: str | None
) -> None:
    assert detect_language(text) == alone
    assert detect_language(text, expected) == code


def test_clear_languages() -> None:
    assert clear_language("Der Fluss führt im Frühling mehr Wasser, als man dachte.") == "de"
    assert [clear_language(text) for text in ("Uusi maailma", "1914-1918", "")] == [None] * 3


def test_usual_languages() -> None:
    assert usual_languages({"et": 40, "en": 400, "fi": 560}) == ("fi", "en")
    assert usual_languages({}) == ()


def _titles(path: Path, count: int) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = (line.split("\t")[0].split(" ¤ ")[0] for line in lines)
        titles = (text.split(" : ")[0].split(": ")[0].strip() for text in texts)
        return [title for title in titles if title][:count]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("file", "code", "expected", "gain"),
    [
        ("yso/yso-finna-fi.tsv.gz", "fi", ("fi", "en"), 0.015),
        ("yso/yso-finna-en.tsv.gz", "en", ("fi", "en"), 0.05),
        ("tibkat/de.tsv.gz", "de", ("de", "en"), 0.04),
        ("tibkat/en.tsv.gz", "en", ("de", "en"), 0.06),
    ],
)
def test_short_titles(
    file: str, code: str, expected: tuple[str, ...], gain: float, shared_data: Path
) -> None:
    titles = _titles(shared_data / file, 1_000)
    before = sum(detect_language(title) == code for title in titles)
    after = sum(detect_language(title, expected) == code for title in titles)
    assert after - before > gain * len(titles)


def test_detection_knows_all_the_languages_it_names() -> None:
    from labelkin.corpus.language import _identifier

    assert set(map(str, _identifier().labels)) == set(DETECTED_LANGUAGES)
