"""Every method of annif-client against a service with Annif's API, checked against its contract.

    ENV/bin/python tests/peers/check_annif_client.py http://127.0.0.1:8080/v1/ PROJECT \
        --text "Malaria in children" --text "Diseases of dogs" --token TOKEN

Prints the calls and answers as a Python session, with a line for every check, and exits with 1 if
one failed. Needs annif-client 0.5.0 from PyPI and nothing of labelkin. `learn` adds a document to
the project: use a copy or a demo collection.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import requests
from annif_client import AnnifClient

Result = dict[str, Any]

# Members of the client that are read, not called.
PROPERTIES = {"api_info", "projects"}
RESULT_KEYS = {"uri", "label", "notation", "score"}
PROJECT_KEYS = {
    "project_id", "name", "language", "backend",
    "vocab", "vocab_language", "is_trained", "modification_time",
}  # fmt: skip
VOCAB_KEYS = {"vocab_id", "languages", "size", "loaded"}
# Scores that are computed in a batch may differ in the last digits.
TOLERANCE = 1e-5
SHOWN_RESULTS, SHOWN_CHARACTERS = 5, 96
ANNIF_BATCH = 32
HOSTILE = "50% & more + less = <b>&amp;</b> %zz %00 ünïcödé 漢字 \U0001f98a\n\ttext=x&limit=0"


class Session:
    """Calls to the client that are printed, and checks of their answers."""

    def __init__(self, client: AnnifClient, secret: str | None = None) -> None:
        self.client = client
        self.secret = secret
        self.used: set[str] = set()
        self.checks = self.violations = 0

    def call(self, name: str, *arguments: Any, **settings: Any) -> Any:
        """What the client's member returns or raises, after printing the call."""
        self.used.add(name)
        shown = [_shown(one) for one in arguments]
        shown += [f"{key}={_shown(value)}" for key, value in settings.items()]
        self.say(f">>> client.{name}" + ("" if name in PROPERTIES else f"({', '.join(shown)})"))
        try:
            member = getattr(self.client, name)
            answer = member if name in PROPERTIES else member(*arguments, **settings)
        except Exception as error:  # an answer of another shape can raise anything in the client
            self.say(f"{type(error).__name__}: {error}")
            return error
        self.show(answer)
        return answer

    def suggested(self, project: str, text: str, **settings: Any) -> list[Result]:
        """Suggestions for a comparison: not printed, none if they are not as they should be."""
        try:
            results: list[Result] = self.client.suggest(project, text, **settings)
        except Exception:  # the checks of `suggest` have reported it
            return []
        return [] if any(_result_errors(results)) else results

    def check(self, what: str, holds: bool, seen: object = None) -> bool:
        """Print whether a requirement holds, and count it."""
        self.checks += 1
        if holds:
            self.say(f"    ok: {what}")
        else:
            self.violations += 1
            self.say(f"    VIOLATION: {what}" + ("" if seen is None else f"; got {seen!r}"))
        return holds

    def note(self, text: str) -> None:
        self.say(f"    note: {text}")

    def title(self, text: str) -> None:
        self.say(f"\n# {text}")

    def show(self, answer: Any) -> None:
        """Print an answer, long lists abbreviated."""
        if isinstance(answer, requests.Response):
            self.say(f"<Response [{answer.status_code}]>")
        elif isinstance(answer, list) and answer:
            for one in answer[:SHOWN_RESULTS]:
                self.say(_line(one))
            if len(answer) > SHOWN_RESULTS:
                self.say(f"… {len(answer) - SHOWN_RESULTS} more")
        else:
            self.say(repr(answer))

    def say(self, text: str) -> None:
        """Print a line without the token."""
        for secret in filter(None, (self.secret, quote(self.secret or "", safe=""))):
            text = text.replace(secret, "TOKEN")
        print(text, flush=True)


def _shown(value: Any) -> str:
    if isinstance(value, io.StringIO):
        return f"io.StringIO({_shown(value.getvalue())})"
    if isinstance(value, list) and len(value) > ANNIF_BATCH:
        return f"[{_shown(value[0])}, … {len(value)} in all]"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def _line(one: Any) -> str:
    """A line for a suggestion, a project or a document of a batch."""
    if isinstance(one, dict) and one.keys() >= {"uri", "label", "score"}:
        notation = f"  {one['notation']}" if one.get("notation") else ""
        score = one["score"]
        shown = f"{score:.4f}" if isinstance(score, float) else repr(score)
        return f"{shown}  <{one['uri']}>  {one['label']}{notation}"
    if isinstance(one, dict) and isinstance(one.get("results"), list):
        first = one["results"][:2]
        return f"{one.get('document_id')!r}: {'; '.join(map(_line, first)) or 'nothing'} …"
    if isinstance(one, dict) and "project_id" in one:
        return json.dumps(one, ensure_ascii=False)
    return repr(one)


def main() -> None:
    """Run all parts; exit with 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="the API, such as http://127.0.0.1:8080/v1/")
    parser.add_argument("project", help="a trained project")
    parser.add_argument(
        "--text", action="append", default=[], help="a text that the project has headings for"
    )
    parser.add_argument("--token", help="for `learn`; sent as the password of HTTP Basic")
    parser.add_argument(
        "--learn", choices=["off", "open"], default="off",
        help="without a token: `learn` is refused, or open to everyone (Annif's allow_learn)",
    )  # fmt: skip
    arguments = parser.parse_args()
    texts = arguments.text or ["Malaria in children", "Diseases of dogs and cats"]
    session = Session(AnnifClient(api_base=arguments.url), arguments.token)
    session.say(f">>> client = AnnifClient(api_base={arguments.url!r})")
    check_text_form(session)
    check_information(session)
    known = check_projects(session, arguments.project)
    check_suggestions(session, arguments.project, texts)
    check_refusals(session, arguments.project, texts[0])
    check_batches(session, arguments.project, texts)
    check_languages(session)
    if known:
        check_learning(session, arguments, texts)
    check_all_used(session)
    session.say(f"\n{session.checks} checks, {session.violations} violations")
    sys.exit(1 if session.violations else 0)


def check_text_form(session: Session) -> None:
    text = session.call("__str__")
    session.check("names the API", session.client.api_base in text, text)


def check_information(session: Session) -> None:
    session.title("The service")
    info = session.call("api_info")
    if session.check("is an object", isinstance(info, dict), info):
        for key in ("title", "version"):
            session.check(f"{key} is a string", isinstance(info.get(key), str), info.get(key))


def check_projects(session: Session, project_id: str) -> bool:
    """Whether the project is there; checks the list and each entry."""
    session.title("Projects")
    projects = session.call("projects")
    if not session.check("is a list", isinstance(projects, list), projects):
        return False
    ids = [project.get("project_id") for project in projects]
    session.check("each project once", len(ids) == len(set(ids)), ids)
    for listed in projects:
        check_project(session, listed)
    project = session.call("get_project", project_id)
    if not session.check("is an object", isinstance(project, dict), project):
        return False
    check_project(session, project)
    session.check("has the id asked for", project.get("project_id") == project_id)
    session.check("is trained", project.get("is_trained") is True, project.get("is_trained"))
    if project_id in ids:
        entry = projects[ids.index(project_id)]
        session.check("is the same as in the list", entry == project, entry)
    else:
        session.note(f"{project_id} is not in the list of projects")
    missing = session.call("get_project", "no-such-project")
    check_not_found(session, missing)
    return True


def check_project(session: Session, project: Any) -> None:
    """One line for a project object; a violation for each wrong field."""
    name = project.get("project_id")
    wrong = list(_project_errors(project))
    session.check(f"project {name}: fields and types", not wrong, wrong or None)


def _project_errors(project: dict[str, Any]) -> Iterable[str]:
    """The contract: annif.yaml, `Project`, with the keys that Annif always sends."""
    if project.keys() != PROJECT_KEYS:
        yield f"keys {sorted(project.keys() ^ PROJECT_KEYS)}"
    for key in ("project_id", "name", "language"):
        if not isinstance(project.get(key), str):
            yield key
    backend = project.get("backend")
    if not isinstance(backend, dict) or not isinstance(backend.get("backend_id"), str):
        yield "backend"
    if not isinstance(project.get("is_trained"), bool | None):
        yield "is_trained"
    if not _is_time(project.get("modification_time")):
        yield "modification_time"
    vocabulary = project.get("vocab")
    if vocabulary is not None:
        yield from _vocabulary_errors(vocabulary)
        languages = vocabulary.get("languages", [])
        if vocabulary.get("loaded") and project.get("vocab_language") not in languages:
            yield "vocab_language is not one of the vocabulary's"


def _vocabulary_errors(vocabulary: dict[str, Any]) -> Iterable[str]:
    if vocabulary.keys() != VOCAB_KEYS:
        yield f"vocab keys {sorted(vocabulary.keys() ^ VOCAB_KEYS)}"
    if not isinstance(vocabulary.get("vocab_id"), str):
        yield "vocab_id"
    languages = vocabulary.get("languages")
    if not isinstance(languages, list) or languages != sorted(map(str, languages)):
        yield "vocab.languages is not a sorted list of strings"
    size = vocabulary.get("size")
    if isinstance(size, bool) or not isinstance(size, int | None):
        yield "vocab.size"
    if not isinstance(vocabulary.get("loaded"), bool):
        yield "vocab.loaded"


def _is_time(value: Any) -> bool:
    """Whether a time says its zone, as RFC 3339 wants; null is allowed."""
    if value is None:
        return True
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def check_suggestions(session: Session, project: str, texts: Sequence[str]) -> None:
    session.title("Suggestions")
    for text in texts:
        results = session.call("suggest", project, text)
        if check_results(session, results):
            session.check("has suggestions, 10 at most", 0 < len(results) <= 10, len(results))
    text = texts[0]
    every = session.call("suggest", project, text, limit=100)
    if not check_results(session, every):
        return
    again = session.call("suggest", project, text, limit=100)
    session.check("is the same as before", again == every)
    three = session.call("suggest", project, text, limit=3)
    if check_results(session, three):
        session.check("is the first 3", _scores(three) == _scores(every)[:3], _scores(three))
    none = session.call("suggest", project, text, limit=0)
    session.check("is empty", none == [], none)
    cut = every[len(every) // 2]["score"] if every else 0.5
    above = session.call("suggest", project, text, limit=100, threshold=cut)
    if check_results(session, above):
        wanted = [score for score in _scores(every) if score >= cut]
        session.check("has the scores from the threshold on", _scores(above) == wanted, wanted)
    from_file = session.call("suggest", project, io.StringIO(text), limit=100)
    session.check("a file gives what its text gives", from_file == every)
    old_name = session.call("analyze", project, text, limit=100)
    session.check("the old name gives the same", old_name == every)
    for odd in (HOSTILE, f"{text} {HOSTILE}", "", " \n "):
        results = session.call("suggest", project, odd)
        check_results(session, results)
        if not odd:
            session.check("is empty", results == [], results)


def check_results(session: Session, results: Any) -> bool:
    """Whether these are suggestions as the contract wants them."""
    if not session.check("is a list", isinstance(results, list), results):
        return False
    wrong = list(_result_errors(results))
    what = "uri, label, notation and score; descending, in (0, 1], each URI once"
    return session.check(what, not wrong, wrong or None)


def _result_errors(results: list[Result]) -> Iterable[str]:
    """What is wrong with the suggestions; their order only if each is sound by itself."""
    errors = [error for result in results for error in _field_errors(result)]
    if errors:
        yield from errors
        return
    scores = _scores(results)
    if scores != sorted(scores, reverse=True):
        yield "scores do not descend"
    uris = [result["uri"] for result in results]
    if len(uris) != len(set(uris)):
        yield "a URI occurs twice"


def _field_errors(result: Any) -> Iterable[str]:
    if not isinstance(result, dict) or result.keys() != RESULT_KEYS:
        yield f"keys of {result!r}"
        return
    for key in ("uri", "label"):
        if not isinstance(result[key], str) or not result[key]:
            yield f"{key} {result[key]!r}"
    if not isinstance(result["notation"], str | None):
        yield f"notation {result['notation']!r}"
    score = result["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 < score <= 1:
        yield f"score {score!r}"


def _scores(results: list[Result]) -> list[float]:
    return [result["score"] for result in results]


def check_refusals(session: Session, project: str, text: str) -> None:
    session.title("Requests that are refused")
    check_not_found(session, session.call("suggest", "no-such-project", text))
    check_refusal(session, session.call("suggest", project, text, limit=-1), 400)
    check_refusal(session, session.call("suggest", project, text, limit="many"), 400)
    check_refusal(session, session.call("suggest", project, text, threshold=1.5), 400)
    check_refusal(session, session.call("suggest", project, text, threshold=-0.5), 400)


def check_not_found(session: Session, answer: Any) -> None:
    """The client turns 404 into a ValueError with the `detail` of the answer."""
    plain = isinstance(answer, ValueError) and not isinstance(answer, requests.RequestException)
    if session.check("404 is a ValueError", plain, answer):
        wanted = "Project 'no-such-project' not found"
        session.check("says which project", str(answer) == wanted, str(answer))


def check_refusal(session: Session, answer: Any, *statuses: int) -> None:
    """An error with one of the statuses, as problem+json."""
    response = getattr(answer, "response", None)
    status = getattr(response, "status_code", None)
    wanted = " or ".join(map(str, statuses))
    refused = session.check(f"is refused with {wanted}", status in statuses, status or answer)
    if not refused or response is None:
        return
    kind = response.headers.get("content-type", "").partition(";")[0]
    if not session.check("is problem+json", kind == "application/problem+json", kind):
        return
    problem = response.json()
    sound = isinstance(problem.get("detail"), str) and problem.get("status") == status
    session.check("has a detail and the status", sound, problem)
    session.say(f"        {str(problem.get('detail')).partition(chr(10))[0]}")


def check_batches(session: Session, project: str, texts: Sequence[str]) -> None:
    session.title("Batches")
    documents: list[dict[str, Any]] = [
        {"document_id": f"doc-{number}", "text": text} for number, text in enumerate(texts)
    ]
    documents += [{"text": texts[0], "metadata": {"title": "one"}}, {"text": ""}]
    answer = session.call("suggest_batch", project, documents)
    check_batch(session, answer, documents)
    answer = session.call("suggest_batch", project, documents, limit=3, threshold=0.01)
    if check_batch(session, answer, documents):
        for document, one in zip(documents, answer, strict=True):
            if "metadata" in document:  # which the client's `suggest` cannot send
                continue
            alone = session.suggested(project, document["text"], limit=3, threshold=0.01)
            what = f"{document.get('document_id')}: the scores that suggest gives"
            session.check(what, _close(_scores(one["results"]), _scores(alone)), _scores(alone))
    session.check("is empty", session.call("suggest_batch", project, []) == [])
    many = [{"text": texts[0], "document_id": str(number)} for number in range(ANNIF_BATCH)]
    check_batch(session, session.call("suggest_batch", project, many, limit=1), many)
    many += [{"text": texts[0], "document_id": "one more"}]
    answer = session.call("suggest_batch", project, many, limit=1)
    if isinstance(answer, requests.RequestException):
        session.note("Annif's own limit of 32 documents")
        check_refusal(session, answer, 400)
    else:
        session.note("more than Annif's limit of 32 documents is accepted")
        check_batch(session, answer, many)
    check_not_found(session, session.call("suggest_batch", "no-such-project", documents))
    check_refusal(session, session.call("suggest_batch", project, [{"document_id": "a"}]), 400)
    check_refusal(session, session.call("suggest_batch", project, [{"text": 5}]), 400)
    check_refusal(session, session.call("suggest_batch", project, documents, limit=-1), 400)
    check_refusal(session, session.call("suggest_batch", project, documents, threshold=2), 400)


def check_batch(session: Session, answer: Any, documents: list[dict[str, Any]]) -> bool:
    """Whether there is an answer for each document, in order and with its id."""
    if not session.check("is a list", isinstance(answer, list), answer):
        return False
    ids = [document.get("document_id") for document in documents]
    answered = [one.get("document_id", "missing") for one in answer]
    session.check("the documents' ids in their order", answered == ids, answered)
    wrong = [error for one in answer for error in _result_errors(one["results"])]
    return session.check("results as suggest gives them", not wrong, wrong or None)


def _close(ours: list[float], theirs: list[float]) -> bool:
    return len(ours) == len(theirs) and all(
        abs(one - other) <= TOLERANCE for one, other in zip(ours, theirs, strict=True)
    )


def check_languages(session: Session) -> None:
    session.title("Language detection")
    cases = {
        "The quick brown fox jumped over the lazy dog": "en",
        "Der schnelle braune Fuchs sprang über den faulen Hund": "de",
        "Nopea ruskea kettu hyppäsi laiskan koiran yli": "fi",
    }
    languages = ["en", "de", "fi", "sv"]
    for text, language in cases.items():
        detected = session.call("detect_language", text, languages)
        if check_detected(session, detected, languages):
            first = detected["results"][0]["language"]
            session.check(f"{language} is first", first == language, first)
    text = next(iter(cases))
    detected = session.call("detect_language", io.StringIO(text), ["en"])
    check_detected(session, detected, ["en"])
    detected = session.call("detect_language", "", ["en", "fi"])
    if check_detected(session, detected, ["en", "fi"]):
        session.check("is unknown", detected["results"][0]["language"] is None, detected)
    for refused in ([], ["en", "de", "fi", "sv", "fr", "es"], ["en", "xx"], ["e"], ["english"]):
        check_refusal(session, session.call("detect_language", text, refused), 400)


def check_detected(session: Session, answer: Any, languages: list[str]) -> bool:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not session.check("has a list of results", isinstance(results, list), answer):
        return False
    assert results is not None
    named = [one.get("language", "missing") for one in results]
    session.check("only languages asked for, or null", set(named) <= {*languages, None}, named)
    session.check("each once", len(named) == len(set(named)), named)
    scores = _scores(results)
    descending = scores == sorted(scores, reverse=True)
    session.check("scores descend within 0 and 1", descending and _within(scores), scores)
    return bool(results)


def _within(scores: list[float]) -> bool:
    return all(0 <= score <= 1 for score in scores)


def check_learning(session: Session, arguments: argparse.Namespace, texts: Sequence[str]) -> None:
    """`learn` is refused without the right, and counts at once with it."""
    session.title("Learning")
    project = arguments.project
    # Words that no other document has: only what was learned can suggest a heading for them.
    text = " ".join(f"q{uuid.uuid4().hex[:5]}x" for _ in range(12))
    before = session.call("suggest", project, text)
    if not check_results(session, before):
        return
    new = _new_heading(session, project, texts, {one["uri"] for one in before})
    if not session.check("a heading that is not among them", new is not None):
        return
    assert new is not None
    subject = {key: new[key] for key in ("uri", "label")}
    documents = [{"text": text, "subjects": [subject]}]
    if arguments.token is None and arguments.learn == "off":
        # Annif says 503 where the algorithm cannot learn at all.
        check_refusal(session, session.call("learn", project, documents), 401, 403, 503)
        return
    if arguments.token is not None:
        check_refusal(session, session.call("learn", project, documents), 401, 403)
        _sign_in(session, arguments.url, "wrong-" + arguments.token)
        check_refusal(session, session.call("learn", project, documents), 401, 403)
        _sign_in(session, arguments.url, arguments.token)
    session.check("nothing was learned so far", session.suggested(project, text) == before)
    answer = session.call("learn", project, documents)
    status = getattr(answer, "status_code", None)
    session.check("204, no content", status == 204 and not answer.content, status or answer)
    after = session.call("suggest", project, text)
    if check_results(session, after):
        uris = [one["uri"] for one in after]
        session.check("the heading counts in the next request", subject["uri"] in uris, uris)
    nothing = session.call("learn", project, [])
    status = getattr(nothing, "status_code", None)
    session.check("no documents are fine", status == 204, status or nothing)
    check_not_found(session, session.call("learn", "no-such-project", documents))
    no_uri = [{"text": text, "subjects": [{"label": "x"}]}]
    check_refusal(session, session.call("learn", project, no_uri), 400)
    check_refusal(session, session.call("learn", project, {"text": text}), 400)


def _new_heading(
    session: Session, project: str, texts: Sequence[str], known: set[str]
) -> Result | None:
    """A heading that is suggested for one of the texts and not among the known ones."""
    suggested = [one for text in texts for one in session.suggested(project, text, limit=100)]
    return next((one for one in suggested if one["uri"] not in known), None)


def _sign_in(session: Session, url: str, token: str) -> None:
    """Put the token into the address, which is the way annif-client can send one."""
    parts = urlsplit(url)
    address = parts._replace(netloc=f"x:{quote(token, safe='')}@{parts.netloc}")
    session.client = AnnifClient(api_base=urlunsplit(address))
    session.say(f">>> client = AnnifClient(api_base={session.client.api_base!r})")


def check_all_used(session: Session) -> None:
    """Every public member of the client was called, those of a later version too."""
    session.title("Coverage")
    members = {name for name in dir(AnnifClient) if not name.startswith("_")}
    unused = sorted(members - session.used)
    session.check(f"all members were called: {', '.join(sorted(members))}", not unused, unused)


if __name__ == "__main__":
    main()
