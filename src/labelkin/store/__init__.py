"""The collection folder: settings, documents, label sets, and what was built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labelkin.lazy import lazy_names

if TYPE_CHECKING:
    from labelkin.layout import is_collection
    from labelkin.store.collection import Collection
    from labelkin.store.config import Config
    from labelkin.store.info import CollectionInfo
    from labelkin.store.reports import AddReport, RemoveReport
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "AddReport": "labelkin.store.reports",
            "Collection": "labelkin.store.collection",
            "CollectionInfo": "labelkin.store.info",
            "Config": "labelkin.store.config",
            "RemoveReport": "labelkin.store.reports",
            "is_collection": "labelkin.layout",
        },
    )

__all__ = [
    "AddReport",
    "Collection",
    "CollectionInfo",
    "Config",
    "RemoveReport",
    "is_collection",
]
