from __future__ import annotations

import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.exceptions import ConfigError
from labelkin.store.config import (
    RECIPES,
    CollectionSection,
    Config,
    WatchedConfig,
    read_config,
    set_by_hand,
    to_toml,
    update_config,
    with_recipe,
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


def test_recipes_are_valid_settings(tmp_path: Path) -> None:
    for name, recipe in RECIPES.items():
        config = with_recipe(Config(collection=CollectionSection(name="n")), name)
        write_config(config, tmp_path / "labelkin.toml")
        assert read_config(tmp_path / "labelkin.toml") == config
        assert config.collection.name == "n"
        for section, values in recipe.items():
            for key, value in values.items():
                assert getattr(getattr(config, section), key) == value
    with pytest.raises(ConfigError, match="no recipe 'papers'; known: paper"):
        with_recipe(Config(), "papers")


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
        ("[neighbours]\nheading_weight = -0.5", "greater than or equal to 0"),
        ("[neighbours]\nheading_weight = nan", "neighbours.heading_weight = nan: input should be"),
        ("[neighbours]\ntitle_weight = 0", "greater than or equal to 1"),
        ("[neighbours]\nterm_frequency = 'raw'", "input should be 'log' or 'once'"),
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


def test_a_new_key_follows_the_last_one_of_its_section(tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    path.write_text("# Mixing.\n[mix]\nshare = 0.3\n\n# Names.\n[lexical]\nthreshold = 0.4\n")
    update_config(path, {"mix": {"leading": 0.9}, "rerank": {"rounds": 9}}, chosen=True)
    start, _, rest = path.read_text().partition("# mix: headings that the label autoencoder ")
    assert start == "# Mixing.\n[mix]\nshare = 0.3\n"
    assert "\nleading = 0.9 # labelkin train chose 0.9\n\n# Names.\n[lexical]\n" in rest
    update_config(path, {"mix": {"leading": 0.8, "count": "mean"}})
    assert "\nleading = 0.8\n# mix-ranked: how many headings" in path.read_text()
    config = read_config(path)
    assert (config.mix.leading, config.mix.count, config.rerank.rounds) == (0.8, "mean", 9)
    assert config.lexical.threshold == 0.4


MIX = ("leading", "share", "count", "threshold")


def test_values_that_a_training_chose_are_known_again(tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    write_config(Config(), path)
    assert set_by_hand(path, "mix", MIX) == set()
    update_config(path, {"mix": {"share": 0.4, "count": "mean"}}, chosen=True)
    assert "share = 0.4 # labelkin train chose 0.4\n" in path.read_text()
    assert 'count = "mean" # labelkin train chose "mean"\n' in path.read_text()
    assert set_by_hand(path, "mix", MIX) == set()
    # The next training replaces them, comments and all.
    update_config(path, {"mix": {"share": 0.3}}, chosen=True)
    assert path.read_text().count("labelkin train chose") == 2
    path.write_text(path.read_text().replace("share = 0.3", "share = 0.7"))
    assert set_by_hand(path, "mix", MIX) == {"share"}
    # What `labelkin tune --write` writes is the user's choice.
    update_config(path, {"mix": {"count": "weighted"}})
    assert 'count = "weighted"\n' in path.read_text()
    assert set_by_hand(path, "mix", MIX) == {"share", "count"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        ("[mix]\nshare = 0.2\n", set()),
        ("[mix]\nshare = 0.2 # a fifth, as agreed\n", {"share"}),
        ("mix = { share = 0.5 }\n", {"share"}),
        ("mix.share = 0.5\nmix.threshold = 0.25\n", {"share"}),
        ("[mix]\nthreshold = 1\n", {"threshold"}),
    ],
)
def test_what_is_set_by_hand(text: str, names: set[str], tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    assert set_by_hand(path, "mix", MIX) == set()
    path.write_text(text)
    assert set_by_hand(path, "mix", MIX) == names
    update_config(path, {"mix": {"count": "mean"}}, chosen=True)
    assert read_config(path).mix.count == "mean"
    assert names <= set_by_hand(path, "mix", MIX)


def test_updating_a_broken_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    path.write_text("[mix\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        update_config(path, {"mix": {"share": 0.4}})
    with pytest.raises(ConfigError, match="not valid TOML"):
        set_by_hand(path, "mix", MIX)
    assert path.read_text() == "[mix\n"


@pytest.fixture
def watched(tmp_path: Path) -> WatchedConfig:
    write_config(Config(), tmp_path / "labelkin.toml")
    return WatchedConfig(tmp_path / "labelkin.toml")


def test_settings_are_the_same_object_until_the_file_changes(
    watched: WatchedConfig, tmp_path: Path
) -> None:
    first = watched.current()
    assert watched.current() is first
    update_config(tmp_path / "labelkin.toml", {"neighbours": {"k": 30}})
    second = watched.current()
    assert (first.neighbours.k, second.neighbours.k) == (20, 30)
    assert watched.current() is second


def test_a_change_by_another_process_is_seen(watched: WatchedConfig, tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    code = (
        "import sys; path = sys.argv[1]; text = open(path).read();"
        "open(path, 'w').write(text.replace('k = 20', 'k = 21'))"
    )
    assert watched.current().neighbours.k == 20
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert watched.current().neighbours.k == 21


@pytest.mark.parametrize("text", ["[neighbours\n", "[neighbours]\nk = 0\n", "[unknown]\n", None])
def test_an_invalid_file_leaves_the_last_settings_and_is_reported_once(
    text: str | None, watched: WatchedConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "labelkin.toml"
    valid = "[neighbours]\nk = 40\n"
    path.write_text(valid)
    before = watched.current()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    for _ in range(3):
        assert watched.current() is before
    (message,) = caplog.messages
    assert message.startswith(f"{path}: ")
    assert "keeping the previous settings" in message
    path.write_text(valid.replace("40", "41"))
    assert watched.current().neighbours.k == 41
    assert len(caplog.messages) == 1


def test_threads_may_ask_while_the_file_changes(watched: WatchedConfig, tmp_path: Path) -> None:
    path = tmp_path / "labelkin.toml"
    done = Event()

    def ask() -> list[int]:
        values = []
        while not done.is_set():
            values.append(watched.current().neighbours.k)
        return values

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        try:
            for k in range(21, 50):
                update_config(path, {"neighbours": {"k": k}})
        finally:
            done.set()
        for future in asking:
            assert set(future.result()) <= set(range(20, 50))
    assert watched.current().neighbours.k == 49


def test_opening_with_an_invalid_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "labelkin.toml").write_text("[neighbours]\nk = 0\n")
    with pytest.raises(ConfigError, match=r"neighbours\.k"):
        WatchedConfig(tmp_path / "labelkin.toml")


def test_both_networks_of_the_label_autoencoder_have_their_settings(tmp_path: Path) -> None:
    lines = to_toml(Config()).splitlines()
    joint = lines[lines.index("[joint]") :]
    for key in Config().joint.model_dump():
        assert any(line.startswith(f"{key} = ") for line in joint), key
    place = lines.index('recipe = "joint"')
    assert lines.index("[training]") < place < lines.index("[joint]")
    assert '"paper"' in "".join(lines[place - 3 : place])
    # Collections of earlier versions have neither.
    (tmp_path / "c.toml").write_text('[training]\nepochs = 3\npreset = "large"\n')
    config = read_config(tmp_path / "c.toml")
    assert (config.training.recipe, config.joint.epochs, config.joint.latent) == ("joint", 0, 0)
    for wrong in ('[training]\nrecipe = "papers"\n', "[joint]\nlatent = -1\n", "[joint]\nx = 1\n"):
        (tmp_path / "c.toml").write_text(wrong)
        with pytest.raises(ConfigError, match=r"c\.toml"):
            read_config(tmp_path / "c.toml")
