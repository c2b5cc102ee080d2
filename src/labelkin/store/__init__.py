"""The collection folder: settings, documents, label sets, and what was built from them."""

from __future__ import annotations

from labelkin.layout import is_collection
from labelkin.store.collection import Collection
from labelkin.store.config import Config
from labelkin.store.info import CollectionInfo
from labelkin.store.reports import AddReport, RemoveReport

__all__ = [
    "AddReport",
    "Collection",
    "CollectionInfo",
    "Config",
    "RemoveReport",
    "is_collection",
]
