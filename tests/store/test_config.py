from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.exceptions import ConfigError
from labelkin.store.config import (
    CollectionSection,
    Config,
    read_config,
    to_toml,
    update_config,
    write_config,
)


def test_round_trip_with_every_key_documented(tmp_path: Path) -> None:
    config = Config(collection=CollectionSection(name='A "quoted" näme\\', language="de"))
    write_config(config, tmp_path / "labelkin.toml")
    assert read_config(tmp_path / "labelkin.toml") == config
    lines = to_toml(config).splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# "), line


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_any_name_can_be_written(name: str) -> None:
    table = tomllib.loads(to_toml(Config(collection=CollectionSection(name=name))))
    assert table["collection"]["name"] == name


def test_missing_keys_have_defaults(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[documents]\nbatch_size = 7\n")
    config = read_config(tmp_path / "c.toml")
    assert config.documents.batch_size == 7
    assert config.documents.max_characters == Config().documents.max_characters


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[documents]\nbatchsize = 7",
            "'documents.batchsize'; did you mean 'batch_size'",
        ),
        ("[document]\n", "unknown key 'document'; did you mean 'documents'"),
        ("[documents]\nzzz = 7", "known here: max_characters, batch_size"),
        ("[documents]\nbatch_size = '7'", "documents.batch_size = '7': input should be"),
        ("[documents]\nbatch_size = 0", "greater than or equal to 1"),
        ("[labels]\nunknown = 'drop'", "labels.unknown = 'drop': input should be 'report' or"),
        ("[collection]\nlanguage = 'English'", "collection.language"),
        ("[documents\n", "not valid TOML"),
    ],
)
def test_messages(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_updating_keeps_comments_and_other_values(tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    path.write_text("# mine\n[neighbours]\nk = 5 # few\n")
    update_config(path, {"neighbours": {"k": 30}, "suggest": {"threshold": 0.25}})
    assert path.read_text().startswith("# mine\n[neighbours]\nk = 30 # few\n")
    config = read_config(path)
    assert (config.neighbours.k, config.suggest.threshold) == (30, 0.25)
