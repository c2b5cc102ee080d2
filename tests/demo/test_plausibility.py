"""What a reader sees first: the default method's headings for texts that are not in the data."""

from __future__ import annotations

import pytest

from labelkin import Document, Indexer
from labelkin.cli.demo import TEXTS
from labelkin.demo import demo_concepts, demo_documents
from labelkin.demo.headings import demo_headings
from labelkin.demo.topics import CHECK_TAGS, companion_names
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.suggestion import Suggestion
from labelkin.vocab import Vocabulary

pytest.importorskip("lightgbm", reason="needs the extra `rerank`")

OTHER_TEXTS = (
    "Sheep scab in hill flocks",
    "Salmon migration past weirs and fish ladders",
    "Pruning old apple trees in cottage gardens",
    "Cider making from windfall apples",
    "Nitrate in groundwater below arable fields",
    "Bumblebees in flower-rich hedgerows",
    "Herring catches and the fishing fleet",
    "Coppicing oak woodland for firewood",
    "Slug damage to lettuces in wet springs",
    "Dairy cows with mastitis in winter housing",
)


@pytest.fixture(scope="module")
def suggested(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Suggestion]]:
    folder = tmp_path_factory.mktemp("plausible") / "c"
    with Indexer.create(folder, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(1500, 0))
        assert indexer.adopt_reranker(
            indexer.train_reranker(settings=RerankTrainingSettings(rounds=80, threads=1))
        )
        texts = [Document("", text, language="en") for text in (*TEXTS, *OTHER_TEXTS)]
        return dict(zip((*TEXTS, *OTHER_TEXTS), indexer.suggest(texts), strict=True))


def test_every_text_gets_headings_and_the_first_is_named(
    suggested: dict[str, list[Suggestion]],
) -> None:
    for text, suggestions in suggested.items():
        assert suggestions, text
        assert suggestions[0].named, text


def test_no_check_tag_and_no_place_that_the_text_does_not_name(
    suggested: dict[str, list[Suggestion]],
) -> None:
    places = {heading.id for heading in demo_headings() if heading.category in "GH"}
    tags = {heading.id for heading in demo_headings() if heading.concept.name() in CHECK_TAGS}
    for suggestions in suggested.values():
        for one in suggestions:
            assert one.named or one.concept.id not in places | tags, one.concept.name()


def above(identifiers: set[str], vocabulary: Vocabulary) -> set[str]:
    """Everything above some concepts in the hierarchy."""
    broader = {parent for one in identifiers for parent in vocabulary.broader(one)}
    return broader | above(broader, vocabulary) if broader else set()


def test_nearly_all_headings_are_named_or_belong_to_one_that_is(
    suggested: dict[str, list[Suggestion]],
) -> None:
    vocabulary = Vocabulary(demo_concepts(0))
    by_name = {concept.name(): concept.id for concept in vocabulary}
    companions = {
        by_name[name]: {by_name[one] for one in names} for name, names in companion_names().items()
    }
    total = plausible = 0
    for suggestions in suggested.values():
        named = {one.concept.id for one in suggestions if one.named}
        expected = named | above(named, vocabulary)
        expected |= {other for one in named for other in companions.get(one, ())}
        expected |= {one for one, others in companions.items() if others & named}
        expected |= {other for one in named for other in vocabulary.narrower(one)}
        total += len(suggestions)
        plausible += sum(one.concept.id in expected for one in suggestions)
    assert total > 2 * len(suggested)
    assert plausible >= 0.9 * total
