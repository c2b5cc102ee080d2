from __future__ import annotations

from labelkin.experiments.document import Comparison, Heading, Paragraph, Table
from labelkin.experiments.html_report import html


def test_texts_are_escaped_and_cells_hold_paper_and_ours() -> None:
    from lxml import html as parser

    table = Table(
        ["name", "MiF"],
        [["<b>", Comparison(0.4, 0.5, paper_best=True)], ["c", Comparison(0.6)]],
        blocks=frozenset({1}),
    )
    text = html(
        [Heading("A & B", 1), Heading("All rows"), Paragraph("`k` < [x](y.md)"), table], "A & B"
    )
    page = parser.fromstring(text)
    assert page.findtext(".//title") == "A & B"
    (paragraph,) = page.iter("p")
    assert paragraph.text_content() == "k < x"
    assert paragraph.find("code").text == "k"
    assert paragraph.find("a").get("href") == "y.md"
    first, second = page.findall(".//tbody/tr")
    assert first.find("td").text == "<b>"
    assert first.find(".//span[@class='paper']/b").text == "0.5000"
    assert first.find(".//span[@class='difference']").text == "−0.1000"
    assert second.get("class") == "block"
    assert page.find(".//nav/a").get("href") == "#all-rows"
    assert page.find(".//h2").get("id") == "all-rows"
