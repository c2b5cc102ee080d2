from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labelkin import Indexer, RerankTrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.vocab import Vocabulary

pytest.importorskip("fastapi", reason="needs the extra `serve`")

from ..served import TOKEN, Running, running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, for a module: its event loop must not last into tests of other modules."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="needs the extra `test`")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with a reranker where that can be trained, for tests that do not change it."""
    path = tmp_path_factory.mktemp("page") / "demo"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(400, 0))
        if not _lacks("lightgbm"):
            indexer.train(label_ae=False, rerank=RerankTrainingSettings(linear=False))
        indexer.warm_up(indexer.usable_methods())
    return path


def _lacks(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return True
    return False


@pytest.fixture
def served(trained: Path, tmp_path: Path) -> Iterator[Running]:
    """A service on a copy of the collection."""
    path = shutil.copytree(trained, tmp_path / "demo")
    with running({"demo": path}) as service:
        yield service


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open the page of a service; any error in the console fails the test."""
    contexts, errors = [], []

    def enter(service: Running, address: str = "", **options: Any) -> Any:
        context = browser.new_context(
            **{"viewport": {"width": 1300, "height": 900}, "locale": "en", **options}
        )
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=service.url)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda one: errors.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{service.url}/{address}")
        # The last that is loaded; then everything is drawn.
        until(page, lambda: page.query_selector("#method option") is not None)
        return page

    yield enter
    for context in contexts:
        context.close()
    # Refused requests, and those to a service that a test has ended, are shown in the console by
    # the browser itself.
    expected = ("status of 40", "net::ERR_CONNECTION")
    assert [one for one in errors if not any(known in one for known in expected)] == []


def until(page: Any, condition: Callable[[], object], seconds: float = 15.0) -> None:
    """Wait until something is true; the page's policy forbids to ask in the page itself."""
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("not within the time")


def give_token(page: Any) -> None:
    """Type the token where the page asks for it."""
    page.wait_for_selector("#token-value")
    page.fill("#token-value", TOKEN)
    page.keyboard.press("Enter")
