"""The Python client against the live service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")

from labelkin import Document, __version__
from labelkin.client import Client
from labelkin.exceptions import MissingExtraError, ServiceError
from labelkin.serve.server import listening_socket

from .runtime_data import fresh_documents
from .served import ODD_IDS, TEXT, TOKEN, Running, copied, running

if TYPE_CHECKING:
    import httpx


@pytest.fixture
def client(live: Running) -> Iterator[Client]:
    with Client(live.url) as made:
        yield made


@pytest.fixture(scope="module")
def written(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = copied(small, tmp_path_factory.mktemp("client"))
    with running({"demo": path}) as service:
        yield service


@pytest.fixture
def writer(written: Running) -> Iterator[Client]:
    with Client(written.url + "/", token=TOKEN) as made:
        yield made


def test_the_service(client: Client) -> None:
    client.wait(5.0)
    assert client.is_ready()
    assert client.version() == __version__
    names = [one.name for one in client.collections()]
    assert names == ["demo", "small", "empty"]
    assert client.collection("demo").documents == 400


def test_suggestions(client: Client) -> None:
    document = fresh_documents(1)[0]
    answer = client.suggest("demo", TEXT, limit=3, method="knn")
    assert answer.method == "knn"
    assert len(answer.results[0].suggestions) == 3
    assert answer.results[0].suggestions[0].evidence is not None
    several = client.suggest("demo", [TEXT, {"title": TEXT}, document], limit=1)
    assert [one.title for one in several.results] == ["", TEXT, document.title]
    compared = client.compare("demo", TEXT, methods=["knn", "lexical"])
    assert [one.method for one in compared.results] == ["knn", "lexical"]
    explained = client.explain("demo", TEXT, ["Potato Storage"], method="lexical")
    assert [one.name for one in explained.headings] == ["Potato Storage"]
    near = client.neighbours("demo", {"title": TEXT}, k=3, terms=2)
    assert [len(one.neighbours) for one in near.results] == [3]


def test_streams(client: Client) -> None:
    documents = ({"id": str(number), "title": TEXT} for number in range(250))
    results = list(client.annotate("demo", documents, limit=2))
    assert [one.id for one in results] == [str(number) for number in range(250)]
    assert all(len(one.suggestions) == 2 for one in results)
    stream = client.annotate("demo", [{"id": "a", "title": TEXT}, {"title": 5, "labels": 5}])
    assert next(stream).id == "a"
    with pytest.raises(ServiceError, match="document 2: "):
        next(stream)
    with pytest.raises(ServiceError) as raised:
        list(client.annotate("demo", [TEXT], method="nope"))
    assert raised.value.status == 422


def test_evaluate(client: Client) -> None:
    documents = list(client.documents("demo"))[:20]
    records = [
        {"id": one.id, "title": one.title, "labels": [x.id for x in one.labels]}
        for one in documents
    ]
    report = client.evaluate("demo", records, methods=["knn"], measures=["MiF"])
    assert report.known == 20
    assert 0 <= (report.reports[0].measures["MiF"] or 0) <= 1


def test_the_vocabulary(client: Client) -> None:
    hits = list(client.search("demo"))
    assert len(hits) == len({one.id for one in hits}) == client.collection("demo").concepts
    assert client.search_page("demo", "potat", limit=2).total > 2
    for identifier in ODD_IDS:
        assert client.concept("demo", identifier).id == identifier
        tree = client.tree("demo", identifier)
        assert tree.concept is not None
    assert client.tree("demo", limit=3).total > 3
    assert client.concept("demo", "LK0028", language="de").name == "Kartoffeln"


@pytest.mark.parametrize("identifier", [*ODD_IDS, "documents", "a.b"])
def test_documents_of_any_id(writer: Client, identifier: str) -> None:
    assert writer.replace("demo", identifier, {"title": "Zeppelins"}).added == 1
    assert writer.correct("demo", identifier, ["LK0005"]).corrected == 1
    assert [one.id for one in writer.document("demo", identifier).labels] == ["LK0005"]
    assert writer.remove("demo", identifier).removed == 1
    with pytest.raises(ServiceError) as raised:
        writer.document("demo", identifier)
    assert raised.value.status == 404


def test_documents_come_back_as_they_were(writer: Client) -> None:
    document = Document(
        "whole",
        "A title — 😀",
        "A text.",
        fields={"notes": "More."},
        language="en",
        metadata={"year": 1999},
        labels=("LK0005", "LK0006", "unknown"),
        label_names={"unknown": "A name"},
        major_labels=("LK0006",),
    )
    assert writer.add("demo", document).added == 1
    stored = writer.document("demo", "whole")
    assert (stored.title, stored.body, stored.fields) == (
        "A title — 😀",
        "A text.",
        {"notes": "More."},
    )
    assert stored.metadata == {"year": 1999}
    assert [(one.id, one.major, one.resolved) for one in stored.labels] == [
        ("LK0005", False, True),
        ("LK0006", True, True),
        ("unknown", False, False),
    ]
    assert writer.replace("demo", "whole", stored.model_dump()).unchanged == 1


def test_many_documents(writer: Client) -> None:
    report = writer.add("demo", ({"id": f"m{n}", "title": f"Zeppelin {n}"} for n in range(1200)))
    assert report.added == 1200
    ids = [one.id for one in writer.documents("demo")]
    assert len(set(ids)) == len(ids)
    assert {f"m{n}" for n in range(1200)} <= set(ids)


def test_threads_may_share_a_client_and_see_what_they_write(writer: Client) -> None:
    failures: list[object] = []

    def work(word: str) -> None:
        for number in range(15):
            label = ("LK0005", "LK0006")[number % 2]
            writer.replace("demo", word, {"title": word, "labels": [label]})
            (result,) = writer.suggest("demo", word, method="knn", k=1).results
            if [one.id for one in result.suggestions] != [label]:
                failures.append((word, number))

    threads = [threading.Thread(target=work, args=(word,)) for word in ("dirigible", "aerostat")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_failures_have_a_status(live: Running, client: Client) -> None:
    with pytest.raises(ServiceError) as raised:
        client.collection("nothere")
    assert raised.value.status == 404
    assert "no collection 'nothere'" in str(raised.value)
    with pytest.raises(ServiceError) as raised:
        client.suggest("demo", TEXT, method="nope")
    assert raised.value.status == 422
    with pytest.raises(ServiceError) as raised:
        client.suggest("demo", TEXT, nonsense=1)
    assert raised.value.status == 422
    with pytest.raises(ServiceError) as raised:
        client.suggest("small", TEXT, method="rerank")
    assert raised.value.status == 503
    with pytest.raises(ServiceError) as raised:
        client.remove("demo", "demo-00001")
    assert raised.value.status == 401
    with pytest.raises(ServiceError) as raised:
        list(client.search("demo", "x" * 2000))
    assert raised.value.status == 422
    with (
        Client(live.url, token="wrong") as wrong,
        pytest.raises(ServiceError, match="needs the token"),
    ):
        wrong.add("demo", TEXT)


def test_a_service_that_is_not_there() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client:
        assert not client.is_ready()
        with pytest.raises(ServiceError, match="is the service running") as raised:
            client.version()
        assert raised.value.status == 0
        with pytest.raises(ServiceError, match="not ready within 0 seconds"):
            client.wait(0.0)
        with pytest.raises(ServiceError, match="is the service running"):
            list(client.annotate("demo", [TEXT]))


def test_answers_that_are_not_labelkins() -> None:
    import httpx

    def answer(request: httpx.Request) -> httpx.Response:
        status = 302 if request.url.path.endswith("version") else 502
        return httpx.Response(status, text="<html>a proxy</html>")

    with Client("http://proxy.example", transport=httpx.MockTransport(answer)) as client:
        for call, status in ((client.version, 302), (client.collections, 502)):
            with pytest.raises(ServiceError, match="a proxy") as raised:
                call()
            assert raised.value.status == status


def test_a_stream_that_the_service_breaks_off() -> None:
    import httpx

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        return httpx.Response(200, text='{"error": "an error of labelkin"}\n')

    with (
        Client("http://x.example", transport=httpx.MockTransport(answer)) as client,
        pytest.raises(ServiceError, match=r"^an error of labelkin$"),
    ):
        list(client.annotate("demo", [TEXT]))


def test_without_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'labelkin\[client\]'"):
        Client()


def test_revisions_and_corrections(writer: Client) -> None:
    stored = Document("old", TEXT, labels=("LK0005",), revision="2024-03-05")
    assert writer.add("demo", stored).added == 1
    assert writer.learn("demo", {"id": "old", "labels": ["LK0006"]}).corrected == 1
    shown = writer.show("demo", "old", 2)
    assert [one.id for one in shown.labels] == ["LK0006"]
    assert (shown.revision, len(shown.neighbours)) == ("2024-03-05", 2)
    older = {"id": "old", "title": "Zeppelins", "revision": "2023"}
    for write in (
        lambda: writer.add("demo", older),
        lambda: writer.replace("demo", "old", older),
        lambda: writer.learn("demo", {"id": "old", "labels": [], "revision": "2023"}),
        lambda: writer.correct("demo", "old", [], revision="2023"),
    ):
        with pytest.raises(ServiceError, match="older than 2024-03-05") as raised:
            write()
        assert raised.value.status == 409
    report = writer.correct("demo", "old", ["LK0007"], revision="2022", take_older=True)
    assert (report.corrected, writer.document("demo", "old").revision) == (1, "2022")
    assert writer.learn("demo", [{"id": "nobody", "labels": ["LK0005"]}]).missing == ["nobody"]
