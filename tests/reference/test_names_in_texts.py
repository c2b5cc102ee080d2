"""Names in real abstracts: the automaton finds what looking up every run of words finds."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from labelkin import read_corpus, read_vocabulary
from labelkin.evaluate.gold import gold_matrix
from labelkin.represent.folding import folded, plain, text_words
from labelkin.scoring.mentions import MentionFinder
from labelkin.scoring.name_table import NameTable
from labelkin.vocab import Vocabulary

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def vocabulary(shared_data: Path) -> Vocabulary:
    return read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")


@pytest.fixture(scope="module")
def finder(vocabulary: Vocabulary) -> MentionFinder:
    return MentionFinder(NameTable.make(vocabulary, "en"))


def test_nothing_is_missed_or_made_up(finder: MentionFinder, shared_data: Path) -> None:
    table = finder.table
    words = {code: word for word, code in table.codes().items()}
    names = {tuple(words[code] for code in name): place for place, name in enumerate(table.names)}
    longest = max(map(len, names))
    corpus = read_corpus(shared_data / "mesh47k" / "dev.json.gz")
    documents = list(islice(corpus.documents(), 200))
    found = finder.find(documents)
    for place, document in enumerate(documents):
        expected: set[int] = set()
        for text in (document.title, document.body):
            forms = [folded(word, "en") for word in text_words(plain(text))]
            for begin in range(len(forms)):
                for end in range(begin + 1, min(begin + longest, len(forms)) + 1):
                    name = names.get(tuple(forms[begin:end]))
                    if name is not None:
                        entries = slice(table.starts[name], table.starts[name + 1])
                        spelled = ~table.acronyms[entries]
                        expected.update(table.columns[entries][spelled].tolist())
        span = slice(found.starts[place], found.starts[place + 1])
        columns, acronym = found.columns[span], found.acronym[span]
        assert {*columns[~acronym].tolist()} == expected


def test_names_in_titles_are_mostly_right(
    finder: MentionFinder, vocabulary: Vocabulary, shared_data: Path
) -> None:
    documents = list(read_corpus(shared_data / "mesh47k" / "l1000.json.gz").documents())
    gold = gold_matrix(documents, vocabulary).tocsr()
    found = finder.find(documents)
    right = np.asarray(gold[found.documents, found.columns]).ravel() > 0
    in_title, outside = found.title > 0, found.title + found.body > 0
    assert right[in_title].mean() == pytest.approx(0.53, abs=0.01)
    assert right[outside].sum() / gold.nnz == pytest.approx(0.30, abs=0.01)
