from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import Deletion, Document, read_corpus

Write = Callable[[str, str | bytes], Path]

HEADER = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "http://example.org/p.dtd">
<PubmedArticleSet>
"""
ARTICLE = """<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM">
<PMID Version="1">101</PMID>
<Article PubModel="Print"><Journal><JournalIssue><PubDate><MedlineDate>1998 Dec-1999 Jan
</MedlineDate></PubDate></JournalIssue><Title>Journal of Loaves</Title></Journal>
<ArticleTitle>Growth of <i>Secale cereale</i> at CO<sub>2</sub> &lt; 400&#xa0;ppm.</ArticleTitle>
<Abstract><AbstractText Label="BACKGROUND" NlmCategory="BACKGROUND">Rye grows.</AbstractText>
<AbstractText Label="UNLABELLED">It does.</AbstractText>
<AbstractText>So.</AbstractText><CopyrightInformation>All mine</CopyrightInformation></Abstract>
<Language>ger</Language></Article>
<MeshHeadingList>
<MeshHeading><DescriptorName UI="D1" MajorTopicYN="Y">Rye</DescriptorName></MeshHeading>
<MeshHeading><DescriptorName UI="D2" MajorTopicYN="N">Bread</DescriptorName>
<QualifierName UI="Q1" MajorTopicYN="Y">history</QualifierName></MeshHeading>
</MeshHeadingList>
<KeywordList Owner="NOTNLM"><Keyword>dough</Keyword></KeywordList>
</MedlineCitation><PubmedData/></PubmedArticle>
"""
DELETED = "<DeleteCitation><PMID>7</PMID><PMID/><PMID>8</PMID></DeleteCitation>\n"
FOOTER = "</PubmedArticleSet>\n"


def second(body: str = "") -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>102</PMID><Article>{body}</Article>"
        "</MedlineCitation></PubmedArticle>\n"
    )


def test_article(write: Write) -> None:
    corpus = read_corpus(write("p.xml", HEADER + ARTICLE + DELETED + FOOTER))
    document, *deletions = corpus
    assert isinstance(document, Document)
    assert document.id == "101"
    assert document.title == "Growth of Secale cereale at CO2 < 400 ppm."
    assert document.body == "BACKGROUND: Rye grows.\nIt does.\nSo."
    # PubMed's texts are in English, whatever the article was written in.
    assert document.language == "en"
    assert document.labels == ("D1", "D2")
    assert document.label_names == {"D1": "Rye", "D2": "Bread"}
    assert document.metadata == {
        "journal": "Journal of Loaves",
        "year": 1998,
        "article_language": "de",
        "keywords": ["dough"],
        "mesh": [
            {"ui": "D1", "name": "Rye", "major": True},
            {
                "ui": "D2",
                "name": "Bread",
                "major": False,
                "qualifiers": [{"ui": "Q1", "name": "history", "major": True}],
            },
        ],
    }
    assert deletions == [Deletion("7"), Deletion("8")]
    assert (corpus.report.deletions, corpus.report.skipped) == (2, 1)


def test_vernacular_title_is_in_the_articles_language(write: Write) -> None:
    body = (
        "<ArticleTitle>[Not Available].</ArticleTitle><VernacularTitle>Vom Roggen</VernacularTitle>"
    )
    body += "<Language>ger</Language>"
    (document,) = read_corpus(write("p.xml", HEADER + second(body) + FOOTER)).documents()
    assert (document.title, document.language) == ("Vom Roggen", "de")


def test_bad_citations_are_named_by_pmid(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    without_id = second("<ArticleTitle>x</ArticleTitle>").replace("<PMID>102</PMID>", "")
    book = "<PubmedBookArticle><BookDocument><PMID>3</PMID></BookDocument></PubmedBookArticle>"
    corpus = read_corpus(write("p.xml", HEADER + second() + without_id + ARTICLE + book + FOOTER))
    assert [document.id for document in corpus.documents()] == ["101"]
    assert corpus.report.skipped == 3
    assert "PMID 102 (line 4): no text" in caplog.messages[0]
    assert "PMID missing (line 5): no PMID" in caplog.messages[1]
    assert "PMID 3" in caplog.messages[2]


def test_cut_in_half(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    whole = "".join(ARTICLE.replace("101", str(number)) for number in range(1000, 1200))
    path = write("p.xml", HEADER + whole[: len(whole) // 2])
    corpus = read_corpus(path)
    ids = [document.id for document in corpus.documents()]
    assert ids == [str(number) for number in range(1000, 1100)]
    assert len(caplog.messages) == 1
    assert f"{path}: broken XML after record 100" in caplog.messages[0]


def test_entities_are_not_expanded(write: Write) -> None:
    bomb = HEADER.replace(
        '"http://example.org/p.dtd">',
        '"http://example.org/p.dtd" [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
    )
    body = "<ArticleTitle>x &b; y</ArticleTitle>"
    (document,) = read_corpus(write("p.xml", bomb + second(body) + FOOTER)).documents()
    assert "aaaa" not in document.title


@pytest.mark.shared
def test_real_file(shared_data: Path) -> None:
    corpus = read_corpus(shared_data / "medline" / "pubmed20n0014.xml.gz")
    assert sum(1 for _ in corpus) == 29_417
    assert (corpus.report.skipped, corpus.report.without_labels) == (0, 2)


def test_the_date_of_revision(write: Write) -> None:
    def revised(date: str) -> str:
        return ARTICLE.replace("</PMID>", f"</PMID><DateRevised>{date}</DateRevised>", 1)

    day = "<Year>2019</Year><Month>2</Month><Day>07</Day>"
    path = write("p.xml", HEADER + revised(day) + revised("<Year>2019</Year>") + ARTICLE + FOOTER)
    documents = list(read_corpus(path).documents())
    assert [one.revision for one in documents] == ["2019-02-07", None, None]
    assert documents[0].where.startswith(f"{path}, PMID 101 (line ")
    assert "DateRevised" not in documents[0].metadata
