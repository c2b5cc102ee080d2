from __future__ import annotations

from labelkin.corpus import Document


def test_cut() -> None:
    document = Document("1", "title", "x" * 50, fields={"toc": "y" * 30})
    assert document.cut(50) is document
    cut = document.cut(10)
    assert (cut.title, len(cut.body), len(cut.fields["toc"])) == ("title", 10, 10)


def test_text_joins_what_is_there() -> None:
    assert Document("1", "", "body", fields={"a": "", "b": "more"}).text == "body\nmore"
