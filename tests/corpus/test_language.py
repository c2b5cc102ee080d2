from __future__ import annotations

import pytest

from labelkin.corpus.language import DETECTED_LANGUAGES, detect_language, normalise_language


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


def test_detection_knows_all_the_languages_it_names() -> None:
    from labelkin.corpus.language import _identifier

    assert set(map(str, _identifier().labels)) == set(DETECTED_LANGUAGES)
