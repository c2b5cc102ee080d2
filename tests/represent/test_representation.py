from __future__ import annotations

import pytest

from labelkin.exceptions import ConfigError
from labelkin.represent import make_representation
from labelkin.store.config import RepresentationSection


def test_names_can_be_joined_in_any_order() -> None:
    settings = RepresentationSection(title_weight=2)
    representation = make_representation("stems + stems", settings)
    assert representation.name == "stems"
    assert list(representation.versions()) == ["stems"]
    assert "title x2" in representation.versions()["stems"]


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="no representation 'stamps'; known: stems"):
        make_representation("stems+stamps", RepresentationSection())
