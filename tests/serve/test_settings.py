"""Settings as worker processes receive them, and the token, which is none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labelkin.serve.settings import TOKEN_VARIABLE, ServiceSettings, token


def test_settings_survive_json() -> None:
    settings = ServiceSettings(
        collections={"a": Path("/x y"), "ü": Path("z")},
        origins=("https://example.org",),
        representations=("lsa",),
        concurrency=3,
        slow_seconds=0.5,
    )
    assert ServiceSettings.model_validate_json(settings.model_dump_json()) == settings
    assert settings.concurrency == 3
    assert ServiceSettings(collections={}).concurrency >= 2


def test_the_token_comes_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, " secret\n")
    assert token() == "secret"
    assert "secret" not in ServiceSettings(collections={}).model_dump_json()
    monkeypatch.setenv(TOKEN_VARIABLE, "  ")
    assert token() == ""
    monkeypatch.delenv(TOKEN_VARIABLE)
    assert token() == ""
