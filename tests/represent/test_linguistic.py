from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelkin.corpus import Document
from labelkin.exceptions import ConfigError, MissingExtraError
from labelkin.indexer import Indexer
from labelkin.represent import make_representation
from labelkin.represent.language_model import find_language_model, load_language_model
from labelkin.represent.linguistic import LinguisticAnalysis, _batches
from labelkin.store.config import RepresentationSection

pytest.importorskip("spacy")
try:
    find_language_model("en_core_web_sm")
except MissingExtraError:
    pytest.skip("needs the English spaCy model", allow_module_level=True)

KINDS = ("lemmas", "nps", "deps", "ners", "keywords")


def terms(kind: str, text: str, title: str = "", weight: int = 1) -> list[str]:
    document = Document("1", title, text, language="en")
    ((result,),) = LinguisticAnalysis("en_core_web_sm", weight).analyse([document], [kind])
    return result


def test_lemmas_of_content_words() -> None:
    assert terms("lemmas", "The children were eating fresh bread.") == [
        "child",
        "eat",
        "fresh",
        "bread",
    ]


def test_noun_phrases_are_one_term_each() -> None:
    assert terms("nps", "The old baker sold dark rye bread, and she liked it.") == [
        "old_baker",
        "dark_rye_bread",
    ]


def test_dependencies() -> None:
    dependencies = terms("deps", "The treatment of asthma requires expensive drugs.")
    assert set(dependencies) == {
        "nsubj:require:treatment",
        "nmod:treatment:asthma",
        "amod:drug:expensive",
        "obj:require:drug",
    }


def test_relations_have_the_names_of_the_paper() -> None:
    assert "nsubj:sell:bread" in terms("deps", "Bread was sold.")
    assert "iobj:give:wife" in terms("deps", "The man gave his wife a ring.")
    assert "acl:baker:work" in terms("deps", "The bakers who worked hard left.")
    assert "xcomp:become:warm" in terms("deps", "The bread became warm.")


def test_names_are_terms_and_values_are_not() -> None:
    text = "In 1998 the World Health Organization sent 25 doctors from Geneva to Kenya."
    assert terms("ners", text) == ["world_health_organization", "geneva", "kenya"]


def test_keywords_come_strongest_first_and_once() -> None:
    text = "Severe asthma harms children. Severe asthma needs expensive drugs."
    assert terms("keywords", f"Drugs for severe asthma are expensive. {text}") == [
        "severe_asthma",
        "expensive_drug",
        "child",
    ]


@pytest.mark.parametrize("kind", ["lemmas", "nps", "deps", "ners"])
def test_title_weight(kind: str) -> None:
    body = "Rye bread is sold in Geneva."
    title, rest = terms(kind, "", "Old London bridges"), terms(kind, body)
    assert title
    assert rest
    assert terms(kind, body, "Old London bridges") == title + rest
    heavy = terms(kind, body, "Old London bridges", 3)
    assert heavy == [term for term in title for _ in range(3)] + rest


def test_sentences_end_where_the_title_does() -> None:
    assert terms("nps", "Children eat bread.", "Severe asthma") == [
        "severe_asthma",
        "child",
        "bread",
    ]
    fields = {"note": "Dark bread", "place": "Old ovens"}
    document = Document("1", "", "Severe asthma", fields, language="en")
    ((phrases,),) = LinguisticAnalysis("en_core_web_sm").analyse([document], ["nps"])
    assert phrases == ["severe_asthma", "dark_bread", "old_oven"]
    assert "severe_asthma" in terms("keywords", "Rye bread", "Severe asthma")


def test_a_model_that_lacks_what_a_kind_needs(tmp_path: Path) -> None:
    import spacy

    spacy.blank("pl").to_disk(tmp_path / "pl")
    for kind, lacking in (("ners", "an entity recogniser"), ("nps", "rules for noun phrases")):
        with pytest.raises(ConfigError, match=f"gives no {kind}: .*{lacking}"):
            list(LinguisticAnalysis(str(tmp_path / "pl")).analyse([Document("1", "a")], [kind]))


def test_a_model_that_changes_in_its_place(tmp_path: Path) -> None:
    import spacy

    name = str(tmp_path / "model")
    versions = set()
    for number in range(2):
        spacy.blank("en").to_disk(name)
        os.utime(tmp_path / "model" / "meta.json", (number, number))
        find_language_model.cache_clear()
        versions.add(LinguisticAnalysis(name).version("lemmas"))
    assert len(versions) == 2


def test_batches_of_long_texts_are_small() -> None:
    short, long = ("title", "body"), ("", "x" * 150_000)
    batches = _batches([short] * 100 + [long] * 3 + [short])
    assert [len(batch) for batch in batches] == [64, 37, 1, 2]
    assert _batches([]) == []


def test_one_pass_gives_what_single_passes_give() -> None:
    documents = [
        Document("1", "Asthma in Kenya", "Doctors treated severe asthma.", language="en"),
        Document("2", "", "", language="en"),
        Document("3", "", "  \n\t .,;  %%% \u200b", language="en"),
        Document("4", "", "A sentence about red_cross _ and a\u00a0b.", language="en"),
    ]
    analysis = LinguisticAnalysis("en_core_web_sm")
    together = list(analysis.analyse(documents, KINDS))
    for place, kind in enumerate(KINDS):
        alone = [result for (result,) in analysis.analyse(documents, [kind])]
        assert [results[place] for results in together] == alone
    assert together[1] == [[], [], [], [], []]
    for term in (term for results in together for result in results for term in result):
        assert len(term.split()) == 1


def test_several_processes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [Document(str(n), "", f"{n} loaves of rye bread.") for n in range(130)]
    one = list(LinguisticAnalysis("en_core_web_sm", 1, 1).analyse(documents, ["nps"]))
    monkeypatch.setattr("labelkin.represent.linguistic._WORTH_PROCESSES", 1)
    assert list(LinguisticAnalysis("en_core_web_sm", 1, 2).analyse(documents, ["nps"])) == one


def test_threads_get_what_one_thread_gets() -> None:
    analysis = LinguisticAnalysis("en_core_web_sm")
    calls = [
        [Document(str(n), f"Baker number{n} of Geneva", f"Word{n} and bread{n} were sold.")]
        for n in range(24)
    ]
    expected = [list(analysis.analyse(documents, KINDS)) for documents in calls]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda documents: list(analysis.analyse(documents, KINDS)), calls)
        assert list(results) == expected


@pytest.mark.parametrize(
    ("kinds", "without", "within"),
    [
        (["ners"], ["tagger", "parser", "lemmatizer", "tok2vec"], ["ner"]),
        (["lemmas"], ["parser", "ner"], ["tok2vec", "tagger", "lemmatizer"]),
        (["deps", "keywords"], ["ner"], ["parser", "lemmatizer"]),
    ],
)
def test_only_needed_components_run(
    kinds: Sequence[str], without: list[str], within: list[str]
) -> None:
    names = load_language_model("en_core_web_sm", frozenset(kinds)).pipe_names
    assert not set(without) & set(names)
    assert set(within) <= set(names)


def test_a_model_that_is_not_installed_gives_its_install_line() -> None:
    with pytest.raises(MissingExtraError, match="python -m spacy download de_core_news_sm"):
        LinguisticAnalysis("de_core_news_sm").version("lemmas")
    with pytest.raises(MissingExtraError, match="scispacy"):
        find_language_model("en_core_sci_lg")


def test_names_for_several_kinds() -> None:
    section = RepresentationSection()
    assert make_representation("multi", section).name == "keywords+ners+nps"
    assert make_representation("all", section).name == "deps+keywords+lemmas+ners+nps+stems"
    assert make_representation("multi+stems", section).name == "keywords+ners+nps+stems"


def test_kinds_do_not_collide_in_the_index(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(
            [
                Document("name", "Asthma in Kenya", labels=("A",), language="en"),
                Document("verb", "They bake bread", labels=("B",), language="en"),
            ]
        )
        indexer.build("all")
        assert indexer.info().indexes == sorted([*KINDS, "stems"])
        query = [Document("q", "Kenya", "Bakers bake.", language="en")]
        assert set(indexer.neighbour_arrays(query, 2, representation="ners").rows[0]) == {0, -1}
        assert set(indexer.neighbour_arrays(query, 2, representation="lemmas").rows[0]) == {0, 1}
        terms = indexer.search("ners+lemmas").matched_terms(
            query[0], indexer.collection.texts_of([0])
        )
        assert {(match.kind, match.term) for match in terms[0]} == {
            ("lemmas", "kenya"),
            ("ners", "kenya"),
        }
