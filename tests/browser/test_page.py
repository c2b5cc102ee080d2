from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from labelkin import Document, Indexer, read_corpus, read_vocabulary

from ..served import Running, running, spawned
from .conftest import Open, give_token, until

TITLE = "Late blight after wet summers"
TEXT = "Potatoes were stored in village barns. Late blight destroyed the potatoes of two parishes."


def ask(page: Any, title: str = TITLE, text: str = TEXT) -> None:
    """Type a record and wait for its headings."""
    page.wait_for_selector("#title")
    page.fill("#title", title)
    page.fill("#text", text)
    page.click("#suggest")
    page.wait_for_selector(".suggestion")


def names(page: Any, selector: str) -> list[str]:
    return [one.inner_text() for one in page.query_selector_all(selector)]


def test_from_a_pasted_text_to_its_effect(served: Running, open_page: Open) -> None:
    page = open_page(served)
    ask(page)
    first = names(page, ".suggestion .name")[0]
    page.click(".suggestion:first-child .verdict.accepted")
    page.click(".suggestion:nth-child(2) .verdict.rejected")
    assert names(page, ".heading-name") == [first]
    assert page.inner_text(".suggestion:nth-child(2) .decision") == "rejected"
    page.fill("#search", "oyst")
    page.wait_for_selector("#hits li.active")
    page.keyboard.press("Enter")
    until(page, lambda: len(names(page, ".heading-name")) == 2)
    added = names(page, ".heading-name")[1]
    page.fill("#record-id", "my-record")
    page.click("#save")
    give_token(page)
    page.wait_for_selector("#saved")
    assert "my-record" in page.inner_text("#saved")
    assert "distance 0.00" in page.inner_text("#saved")
    stored = served.http.get("/api/v1/collections/demo/documents/my-record").json()
    assert [one["name"] for one in stored["labels"]] == [first, added]
    # The next text of this kind has the added heading among its votes.
    page.click("#new")
    page.select_option("#method", "knn")
    ask(page)
    page.click("#more")
    until(page, lambda: added in names(page, ".suggestion .name"))


def test_evidence_marks_the_words(served: Running, open_page: Open) -> None:
    page = open_page(served)
    until(page, lambda: len(page.query_selector_all("#method option")) > 1)
    page.select_option("#method", "lexical")
    ask(page)
    page.click(".suggestion:first-child .name")
    page.wait_for_selector(".reader mark")
    marked = page.inner_text(".reader mark").lower()
    assert marked in f"{TITLE} {TEXT}".lower()
    assert page.get_attribute(".suggestion:first-child .name", "aria-expanded") == "true"


def test_the_keyboard_alone(served: Running, open_page: Open) -> None:
    page = open_page(served)
    page.wait_for_selector("#title")
    page.focus("#title")
    page.keyboard.type(TITLE)
    page.keyboard.press("Tab")
    page.keyboard.type(TEXT)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".suggestion")
    page.focus("#main")
    shown = names(page, ".suggestion .name")
    page.keyboard.press("a")
    page.keyboard.press("j")
    page.keyboard.press("r")
    page.keyboard.press("j")
    page.keyboard.press("i")
    page.wait_for_selector(".suggestion.unneeded")
    assert names(page, ".suggestion.accepted .name") == [shown[0]]
    assert names(page, ".suggestion.rejected .name") == [shown[1]]
    page.keyboard.press("u")
    page.wait_for_selector(".suggestion.unneeded", state="detached")
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.keyboard.press("e")
    page.wait_for_selector(".evidence section")
    page.keyboard.press("t")
    page.wait_for_selector("dialog.tree[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("#keys-heading")
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    give_token(page)
    page.wait_for_selector("#saved")


def test_a_work_list_survives_a_reload_and_a_restart(
    trained: Path, tmp_path: Path, open_page: Open
) -> None:
    path = shutil.copytree(trained, tmp_path / "demo")
    file = tmp_path / "records.jsonl"
    records = [{"id": f"r{n}", "title": f"{TITLE} {n}", "abstract": TEXT} for n in range(4)]
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    with running({"demo": path}) as service:
        page = open_page(service, "#/worklist")
        give_token(page)
        page.wait_for_selector("#worklist-file", state="attached")
        page.set_input_files("#worklist-file", str(file))
        page.wait_for_selector(".suggestion")
        page.keyboard.press("a")
        page.wait_for_selector(".status.draft")
        page.keyboard.press("n")
        until(page, lambda: page.inner_text("#item-place") == "2 of 4")
        page.wait_for_selector(".suggestion")
        page.keyboard.press("a")
        chosen = names(page, ".heading-name")
        page.wait_for_selector(".status.draft")
        page.reload()
        page.wait_for_selector(".heading-name")
        assert names(page, ".heading-name") == chosen
        assert page.inner_text("#item-place") == "2 of 4"
        address, token = page.url.partition("#")[2], page.evaluate("({...sessionStorage})")
        page.close()
    with spawned(f"demo={path}", log=tmp_path / "log") as again:
        page = open_page(again, "#/record")
        page.evaluate(
            "all => Object.entries(all).forEach(([k, v]) => sessionStorage.setItem(k, v))", token
        )
        page.goto(f"{again.url}/#{address}")
        page.reload()
        page.wait_for_selector(".heading-name")
        assert names(page, ".heading-name") == chosen
        page.click("[data-focus=done]")
        until(page, lambda: page.inner_text("#item-place") == "3 of 4")
        page.click("[data-focus=skip]")
        until(page, lambda: page.inner_text("#item-place") == "4 of 4")
        lists = again.http.get("/api/v1/collections/demo/worklists").json()["worklists"]
        counts = {name: lists[0][name] for name in ("pending", "draft", "done", "skipped")}
        assert counts == {"pending": 1, "draft": 1, "done": 1, "skipped": 1}


def test_a_title_with_a_script(served: Running, open_page: Open) -> None:
    attack = '<script>document.title = "taken"</script><img src=x onerror="document.title=1">'
    served.http.put(
        "/api/v1/collections/demo/documents/attack", json={"title": attack, "abstract": TEXT}
    ).raise_for_status()
    page = open_page(served, "#/record/attack")
    page.wait_for_selector(".suggestion")
    assert attack in page.inner_text(".record-title")
    page.keyboard.press("e")
    page.wait_for_selector(".evidence section")
    assert page.title() == "labelkin"
    assert page.query_selector("main img, main script") is None


def test_suggestions_are_hidden_until_own_headings_are_chosen(
    served: Running, open_page: Open
) -> None:
    page = open_page(served)
    page.check("#blind")
    page.fill("#title", TITLE)
    page.click("#suggest")
    page.wait_for_selector("#reveal")
    assert names(page, ".suggestion") == []
    for letters in ("oyst", "whea"):
        page.fill("#search", letters)
        page.wait_for_selector("#hits li.active")
        page.keyboard.press("Enter")
    page.wait_for_selector(".suggestion")


def test_redundant_headings_order_and_main_topics(served: Running, open_page: Open) -> None:
    tree = served.http.get("/api/v1/collections/demo/tree").json()
    parent = next(one for one in tree["children"] if one["narrower"])
    child = served.http.get(
        "/api/v1/collections/demo/tree", params={"concept": parent["id"]}
    ).json()["children"][0]
    page = open_page(served)
    ask(page)
    for identifier in (parent["id"], child["id"]):
        page.fill("#search", identifier)
        page.wait_for_selector("#hits li.active")
        page.keyboard.press("Enter")
    page.wait_for_selector(".headings .note")
    assert child["name"] in page.inner_text(".headings .note")
    page.click(f'[data-focus="up-{child["id"]}"]')
    assert names(page, ".heading-name")[-1] == parent["name"]
    page.click(f'[data-focus="main-{child["id"]}"]')
    assert names(page, ".major .heading-name") == [child["name"]]
    page.click(".exporting summary")
    page.click("[data-focus=copyMarc]")
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert f"{child['name']}$$2demo/en$$0{child['id']}" in copied


def test_files_can_be_chosen(served: Running, open_page: Open, tmp_path: Path) -> None:
    pubmed = tmp_path / "one.xml"
    pubmed.write_text(
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>77</PMID><Article>"
        f"<ArticleTitle>{TITLE}</ArticleTitle><Abstract><AbstractText>{TEXT}</AbstractText>"
        "</Abstract></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    page = open_page(served)
    page.set_input_files("#file", str(pubmed))
    page.wait_for_selector(".suggestion")
    assert page.inner_text(".record-title") == TITLE
    assert "77" in page.inner_text("#record-heading")


def test_english_and_german(served: Running, open_page: Open) -> None:
    page = open_page(served, locale="de-AT")
    assert page.get_attribute("html", "lang") == "de"
    page.wait_for_selector("#suggest")
    assert "vorschlagen" in page.inner_text("#suggest")
    page.select_option("#language", "en")
    assert page.get_attribute("html", "lang") == "en"
    assert "Suggest" in page.inner_text("#suggest")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["record", "worklist", "compare", "dashboard"])
def test_nothing_serious_for_axe(served: Running, open_page: Open, scheme: str, view: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
    page = open_page(served, color_scheme=scheme, bypass_csp=True)
    ask(page)
    page.keyboard.press("e")
    page.wait_for_selector(".evidence section")
    if view != "record":
        page.goto(f"{served.url}/#/{view}")
        if view == "worklist":
            give_token(page)
        page.wait_for_selector(f".{view} h2")
        page.wait_for_load_state("networkidle")
    found = [
        (one["id"], [node["html"] for node in one["nodes"]][:3])
        for one in axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert found == []


def test_a_narrow_window_does_not_scroll_sideways(served: Running, open_page: Open) -> None:
    page = open_page(served, viewport={"width": 360, "height": 740})
    ask(page, title="A very long title " * 60)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360


@pytest.mark.shared
def test_german_records(shared_data: Path, tmp_path: Path, open_page: Open) -> None:
    vocabulary = read_vocabulary(shared_data / "tibkat" / "gnd-core-en.tsv.gz")
    corpus = read_corpus(shared_data / "tibkat" / "de.tsv.gz", format="annif-tsv")
    documents = [one for one, _ in zip(corpus.documents(), range(600), strict=False)]
    with Indexer.create(tmp_path / "gnd", vocabulary, language="de") as indexer:
        indexer.add(documents[:-1])
    last: Document = documents[-1]
    with running({"gnd": tmp_path / "gnd"}) as service:
        page = open_page(service, locale="de")
        ask(page, last.title or last.body[:80], last.body)
        assert page.get_attribute("html", "lang") == "de"
        page.keyboard.press("e")
        page.wait_for_selector(".carriers li")


@pytest.mark.shared
def test_finnish_titles(shared_data: Path, tmp_path: Path, open_page: Open) -> None:
    vocabulary = read_vocabulary(shared_data / "yso" / "yso-fi.tsv.gz", language="fi")
    corpus = read_corpus(shared_data / "yso" / "yso-finna-fi.tsv.gz", format="annif-tsv")
    documents = [one for one, _ in zip(corpus.documents(), range(3000), strict=False)]
    with Indexer.create(tmp_path / "yso", vocabulary, language="fi") as indexer:
        indexer.add(documents[:-1])
    with running({"yso": tmp_path / "yso"}) as service:
        page = open_page(service)
        ask(page, "Suomen metsien kasvillisuus ja puut", "")
        page.fill("#search", "mets")
        page.wait_for_selector("#hits li.active")
        assert "mets" in page.inner_text("#hits li.active").lower()


API = "/api/v1/collections/demo"


def work_list(service: Running, count: int) -> str:
    """The address of the first record of a new work list."""
    records = [{"id": f"r{n}", "title": f"{TITLE} {n}", "abstract": TEXT} for n in range(count)]
    body = "".join(json.dumps(one) + "\n" for one in records)
    made = service.http.post(f"{API}/worklists", params={"name": "list.jsonl"}, content=body)
    return f"{API}/worklists/{made.json()['id']}"


def on_item(open_page: Open, service: Running, path: str) -> Any:
    page = open_page(service, f"#/worklist/{path.rpartition('/')[2]}/1")
    give_token(page)
    page.wait_for_selector(".suggestion")
    return page


def slowly(page: Any, address: str, method: str, seconds: float = 1.0) -> None:
    """Hold requests of a kind back for a while."""

    def hold(route: Any) -> None:
        if route.request.method == method:
            time.sleep(seconds)
        route.continue_()

    page.route(address, hold)


def test_going_on_while_a_record_is_saved(served: Running, open_page: Open) -> None:
    path = work_list(served, 2)
    page = on_item(open_page, served, path)
    page.keyboard.press("a")
    chosen = names(page, ".heading-name")
    slowly(page, "**/documents/r0", "PUT")
    page.keyboard.press("s")
    page.keyboard.press("n")
    until(page, lambda: page.inner_text("#item-place") == "2 of 2")
    until(page, lambda: served.http.get(f"{path}/items/1").json()["status"] == "done")
    stored = served.http.get(f"{API}/documents/r0").json()
    assert [one["name"] for one in stored["labels"]] == chosen
    decided = served.http.get(f"{API}/verdicts").json()["decisions"]
    assert [one["document"]["id"] for one in decided] == ["r0"]
    assert [one["verdict"] for one in decided[0]["verdicts"]] == ["accepted"]
    page.wait_for_timeout(1000)
    assert served.http.get(f"{path}/items/2").json()["status"] == "pending"
    assert page.query_selector("#saved") is None


def test_a_record_that_was_only_looked_at_stays_pending(served: Running, open_page: Open) -> None:
    path = work_list(served, 3)
    page = on_item(open_page, served, path)
    page.keyboard.press("n")
    until(page, lambda: page.inner_text("#item-place") == "2 of 3")
    page.wait_for_selector(".suggestion")
    page.wait_for_timeout(1000)
    found = served.http.get(path).json()
    assert (found["pending"], found["draft"], found["position"]) == (3, 0, 2)
    page.click("[data-focus=tab-worklist]")
    page.wait_for_selector(".worklist tbody tr")
    page.click("[data-focus=tab-record]")
    until(page, lambda: page.url.endswith("/2"))
    page.reload()
    page.wait_for_selector(".suggestion")
    assert page.inner_text("#item-place") == "2 of 3"


def test_a_decision_while_the_next_record_is_loaded(served: Running, open_page: Open) -> None:
    path = work_list(served, 2)
    page = on_item(open_page, served, path)
    slowly(page, "**/items/2", "GET")
    page.keyboard.press("n")
    page.keyboard.press("a")
    until(page, lambda: page.inner_text("#item-place") == "2 of 2")
    until(page, lambda: served.http.get(f"{path}/items/1").json()["status"] == "draft")
    assert len(served.http.get(f"{path}/items/1").json()["draft"]["chosen"]) == 1
    page.wait_for_timeout(800)
    assert served.http.get(f"{path}/items/2").json()["status"] == "pending"


def test_a_draft_is_kept_when_the_service_is_back(served: Running, open_page: Open) -> None:
    path = work_list(served, 2)
    page = on_item(open_page, served, path)
    page.route("**/items/1", lambda route: route.fulfill(status=408, body="{}"))
    page.keyboard.press("a")
    page.wait_for_selector("#problem:not([hidden])")
    page.unroute("**/items/1")
    until(page, lambda: served.http.get(f"{path}/items/1").json()["status"] == "draft")
    page.wait_for_selector("#problem", state="hidden")


def test_a_changed_text_of_a_work_list_is_kept(served: Running, open_page: Open) -> None:
    path = work_list(served, 2)
    page = on_item(open_page, served, path)
    page.click("#edit")
    page.fill("#title", "Another title")
    page.click("[data-focus=next]")
    until(page, lambda: page.inner_text("#item-place") == "2 of 2")
    assert served.http.get(f"{path}/items/1").json()["draft"]["title"] == "Another title"


def test_a_stored_record_keeps_its_parts(served: Running, open_page: Open) -> None:
    record = {
        "title": TITLE,
        "abstract": TEXT,
        "fields": {"notes": "Found in barns."},
        "metadata": {"year": 1999},
        "language": "en",
        "labels": [],
    }
    served.http.put(f"{API}/documents/mine", json=record)
    before = served.http.get(f"{API}/documents/mine").json()
    page = open_page(served, "#/record/mine")
    page.wait_for_selector(".suggestion")
    page.click("#edit")
    page.fill("#title", "A better title")
    page.click("#save")
    give_token(page)
    page.wait_for_selector("#saved")
    after = served.http.get(f"{API}/documents/mine").json()
    assert after == {**before, "title": "A better title"}


def test_a_record_with_the_id_of_another_one(served: Running, open_page: Open) -> None:
    served.http.put(f"{API}/documents/mine", json={"title": "Precious", "labels": []})
    page = open_page(served)
    ask(page)
    page.fill("#record-id", "mine")
    questions: list[str] = []
    page.once("dialog", lambda one: (questions.append(one.message), one.dismiss()))
    page.click("#save")
    until(page, lambda: questions)
    assert "Precious" in questions[0]
    page.wait_for_selector("#save:not([disabled])")
    assert served.http.get(f"{API}/documents/mine").json()["title"] == "Precious"


def test_a_problem_with_the_suggestions_of_a_stored_record(
    served: Running, open_page: Open
) -> None:
    served.http.put(f"{API}/documents/mine", json={"title": TITLE, "labels": []})
    page = open_page(served)
    page.route("**/suggest", lambda route: route.fulfill(status=408, body='{"detail": "too slow"}'))
    page.fill("#open-id", "mine")
    # Drawn again, as when the collection is there: what is typed stays.
    page.select_option("#language", "de")
    page.select_option("#language", "en")
    page.click("#open")
    page.wait_for_selector("#problem:not([hidden])")
    page.wait_for_timeout(300)
    assert "too slow" in page.inner_text("#problem")


def test_keys_that_are_held_down_or_pressed_in_another_view(
    served: Running, open_page: Open
) -> None:
    page = open_page(served)
    ask(page)
    page.locator(".suggestion .name").first.focus()
    for _ in range(4):
        page.keyboard.down("a")
    page.keyboard.up("a")
    assert len(names(page, ".heading-name")) == 1
    page.dblclick(".suggestion:nth-child(2) .verdict.accepted")
    assert len(names(page, ".heading-name")) == 2
    page.click("[data-focus=tab-dashboard]")
    page.wait_for_selector(".dashboard h2")
    page.keyboard.press("u")
    page.keyboard.press("s")
    page.wait_for_timeout(200)
    assert page.query_selector("#token-value") is None
    page.click("[data-focus=tab-record]")
    assert len(names(page, ".heading-name")) == 2


def test_the_second_collection_after_a_reload(
    trained: Path, tmp_path: Path, open_page: Open
) -> None:
    one, two = (shutil.copytree(trained, tmp_path / name) for name in ("one", "two"))
    with running({"one": one, "two": two}) as service:
        page = open_page(service)
        page.select_option("#collection", "two")
        until(page, lambda: page.url.endswith("#/record"))
        page.reload()
        until(page, lambda: page.query_selector("#collection option") is not None)
        until(page, lambda: page.input_value("#collection") == "two")


def test_a_service_that_comes_later(served: Running, open_page: Open) -> None:
    page = open_page(served)
    page.route("**/api/**", lambda route: route.fulfill(status=408, body='{"detail": "not yet"}'))
    page.reload()
    page.wait_for_selector("#problem:not([hidden])")
    page.unroute("**/api/**")
    page.wait_for_selector("#collection option", state="attached")
    page.wait_for_selector("#problem", state="hidden")
    ask(page)


def test_a_token_that_no_header_can_hold(served: Running, open_page: Open) -> None:
    page = open_page(served, "#/worklist")
    page.wait_for_selector("#token-value")
    page.fill("#token-value", "tök€n")
    page.keyboard.press("Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert "token" in page.inner_text("#problem")
    assert page.query_selector(".worklist .loading") is None
    page.goto(f"{served.url}/#/%")
    page.goto(f"{served.url}/#/worklist")
    give_token(page)
    page.wait_for_selector("#problem", state="hidden")
