"""TF-IDF features, one definition for all peers that take features.

Words of two characters or more that have a letter, in lower case, stemmed by Snowball; words of
one training record only are left out; term frequency × smooth idf, each record of length 1: the
weights of scikit-learn's `TfidfVectorizer`, which Annif's omikuji backend uses too. Omikuji and
napkinXC document no features of their own (their examples take files of the Extreme Classification
Repository); PECOS documents TF-IDF of words. `pairs` adds pairs of neighbouring words, as the
National Library of Finland has them in its own Omikuji projects; `logs` has 1 + log of the term
frequency, scikit-learn's `sublinear_tf`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .data_folder import FEW, MANY, DataFolder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The longest run of words that is a feature.
LENGTHS = {"words": 1, "pairs": 2, "logs": 1}
_LOGARITHMIC = ("logs",)
LEAST_RECORDS = 2
PACKAGES = ("numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1", "PyStemmer==3.1.0")
_STEMMERS = {"en": "english", "de": "german"}
_WORD = re.compile(r"(?=\w*[^\W\d_])\w\w+")


class Vectoriser:
    """Texts as rows of features."""

    def __init__(self, name: str, language: str, terms: dict[str, int] | None = None) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectoriser = TfidfVectorizer(
            analyzer=analyser(language, LENGTHS[name]),
            min_df=LEAST_RECORDS if terms is None else 1,
            vocabulary=terms,
            sublinear_tf=name in _LOGARITHMIC,
            dtype=np.float32,
        )

    def fit(self, texts: Iterable[str]) -> csr_matrix[Any]:
        """Choose the features from training texts; their rows."""
        rows: csr_matrix[Any] = self._vectoriser.fit_transform(texts)
        rows.sort_indices()
        return rows

    def rows(self, texts: Iterable[str]) -> csr_matrix[Any]:
        """The rows of texts; unknown words are left out."""
        rows: csr_matrix[Any] = self._vectoriser.transform(texts)
        rows.sort_indices()
        return rows

    def save(self, folder: Path) -> None:
        """Write the terms in the order of their columns, and their idf."""
        terms = self._vectoriser.get_feature_names_out()
        (folder / "terms.txt").write_text("".join(f"{term}\n" for term in terms), encoding="utf-8")
        np.save(folder / "idf.npy", self._vectoriser.idf_)

    @classmethod
    def load(cls, folder: Path, name: str, language: str) -> Vectoriser:
        """What `save` has written."""
        terms = (folder / "terms.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        loaded = cls(name, language, {term: column for column, term in enumerate(terms)})
        loaded._vectoriser.idf_ = np.load(folder / "idf.npy")
        return loaded


def analyser(language: str, length: int) -> Callable[[str], list[str]]:
    """What gives the terms of a text: stems and runs of up to `length` of them."""
    import Stemmer

    stem = Stemmer.Stemmer(_STEMMERS[language]).stemWords

    def terms(text: str) -> list[str]:
        stems: list[str] = stem(_WORD.findall(text.lower()))
        runs = [
            " ".join(run)
            for size in range(2, length + 1)
            for run in zip(*(stems[first:] for first in range(size)), strict=False)
        ]
        return stems + runs

    return terms


def fit_features(data: DataFolder, name: str) -> None:
    """Choose the features of a data set and write the training rows."""
    from scipy.sparse import save_npz

    folder = data.features(name)
    folder.mkdir(exist_ok=True)
    vectoriser = Vectoriser(name, data.language)
    save_npz(folder / "train.npz", vectoriser.fit(data.texts("train")))
    vectoriser.save(folder)


def write_rows(data: DataFolder, name: str) -> None:
    """Write the rows of all other parts."""
    from scipy.sparse import save_npz

    folder = data.features(name)
    vectoriser = Vectoriser.load(folder, name, data.language)
    for part in (*data.sizes, MANY, FEW):
        if part != "train":
            save_npz(folder / f"{part}.npz", vectoriser.rows(data.texts(part)))
