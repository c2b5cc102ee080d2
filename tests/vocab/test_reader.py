from __future__ import annotations

import bz2
import gzip
import lzma
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.exceptions import (
    DamagedFileError,
    FormatError,
    InputError,
    VocabularyError,
    WrongKindError,
)
from labelkin.vocab import categories, read_vocabulary

Write = Callable[[str, str | bytes], Path]

DESCRIPTORS = """<?xml version="1.0"?>
<!DOCTYPE DescriptorRecordSet SYSTEM "https://example.org/desc.dtd">
<DescriptorRecordSet LanguageCode = "eng">
<DescriptorRecord DescriptorClass = "1"><DescriptorUI>D000001</DescriptorUI>
<DescriptorName><String>Bread</String></DescriptorName>
<TreeNumberList><TreeNumber>J02.100</TreeNumber></TreeNumberList>
<ConceptList><Concept PreferredConceptYN="Y"><ConceptUI>M1</ConceptUI>
<ConceptName><String>Bread</String></ConceptName><TermList>
<Term><TermUI>T1</TermUI><String>Bread</String></Term>
<Term><TermUI>T2</TermUI><String>Loaf</String></Term></TermList></Concept></ConceptList>
</DescriptorRecord>
<DescriptorRecord DescriptorClass = "1"><DescriptorUI>D000002</DescriptorUI>
<DescriptorName><String>Bread, Rye</String></DescriptorName>
<SeeRelatedList><SeeRelatedDescriptor><DescriptorReferredTo><DescriptorUI>D000001</DescriptorUI>
<DescriptorName><String>Bread</String></DescriptorName></DescriptorReferredTo>
</SeeRelatedDescriptor></SeeRelatedList>
<TreeNumberList><TreeNumber>J02.100.200</TreeNumber><TreeNumber>G01.5</TreeNumber></TreeNumberList>
<ConceptList/></DescriptorRecord>
<DescriptorRecord><DescriptorUI>D000003</DescriptorUI></DescriptorRecord>
</DescriptorRecordSet>"""

TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix e: <http://e.org/> .
e:scheme a skos:ConceptScheme ; skos:prefLabel "The scheme"@en .
e:bread a skos:Concept ; skos:prefLabel "Bread"@en , "Brot"@de ; skos:narrower e:rye ;
  skos:inScheme e:scheme ; skos:notation "641" .
e:rye a skos:Concept ; skos:prefLabel "Rye bread"@en-GB ; skos:altLabel "Dark loaf"@en ;
  skos:hiddenLabel "Ry bread"@en ; skos:related e:beer .
e:beer a skos:Concept ; skos:prefLabel "Beer" .
e:malt a skos:Concept ; skos:prefLabel "Malt"@en ; owl:deprecated true ; dct:isReplacedBy e:beer .
"""


def test_mesh_xml(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    vocabulary = read_vocabulary(write("desc2099.xml.gz", gzip.compress(DESCRIPTORS.encode())))
    bread, rye = vocabulary
    assert bread.synonyms == {"en": ("Loaf",)}
    assert rye.notations == ("J02.100.200", "G01.5")
    assert rye.broader == ("D000001",)
    assert rye.related == ("D000001",)
    assert [(c.code, c.name, c.concepts, c.places) for c in categories(vocabulary)] == [
        ("G", "Phenomena and Processes", 1, 1),
        ("J", "Technology, Industry, and Agriculture", 2, 2),
    ]
    assert "no DescriptorUI or DescriptorName" in caplog.messages[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:NTSerializer")
@pytest.mark.parametrize("syntax", ["turtle", "xml", "nt", "json-ld", "n3", "trig", "nquads"])
def test_skos(syntax: str, write: Write, tmp_path: Path) -> None:
    from rdflib import Dataset, Graph

    from labelkin.vocab.skos import SYNTAXES

    extension = next(key for key, value in SYNTAXES.items() if value == syntax)
    graph = Dataset() if syntax in ("trig", "nquads") else Graph()
    graph.parse(data=TURTLE, format="turtle")
    path = tmp_path / f"v{extension}"
    graph.serialize(path, format=syntax)
    vocabulary = read_vocabulary(path)
    assert [c.id.rsplit("/", 1)[-1] for c in vocabulary] == ["beer", "bread", "malt", "rye"]
    bread, rye = vocabulary.concept("http://e.org/bread"), vocabulary.concept("http://e.org/rye")
    assert bread.names == {"de": "Brot", "en": "Bread"}
    assert (bread.notations, bread.schemes) == (("641",), ("http://e.org/scheme",))
    assert rye.names == {"en": "Rye bread"}
    assert rye.synonyms == {"en": ("Dark loaf", "Ry bread")}
    assert (rye.broader, rye.related) == (("http://e.org/bread",), ("http://e.org/beer",))
    assert vocabulary.concept("http://e.org/beer").names == {"en": "Beer"}
    malt = vocabulary.concept("http://e.org/malt")
    assert (malt.deprecated, malt.replaced_by) == (True, ("http://e.org/beer",))


def test_skos_regional_labels_collections_and_extended_labels(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    more = (
        TURTLE
        + """
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
e:shelf a skos:Collection ; skos:prefLabel "Shelf"@en .
e:colour a skos:Concept ; skos:prefLabel "Colour"@en-GB , "Color"@en-US , "Bahn"@de-AT , "Zug"@de .
e:xl a skos:Concept ; xl:prefLabel e:label . e:label xl:literalForm "Extended"@en .
e:nameless a skos:Concept .
"""
    )
    vocabulary = read_vocabulary(write("v.ttl", more))
    assert "http://e.org/shelf" not in vocabulary
    colour = vocabulary.concept("http://e.org/colour")
    assert colour.names["de"] == "Zug"
    assert (
        vocabulary.find("Colour") is vocabulary.find("Color") is vocabulary.find("Bahn") is colour
    )
    assert vocabulary.concept("http://e.org/xl").name() == "Extended"
    assert "1 concept has no preferred label, such as http://e.org/nameless" in caplog.messages[0]


def test_a_remote_context_is_not_fetched(write: Write) -> None:
    path = write("v.jsonld", '{"@context": "http://192.0.2.1/c.json", "@id": "http://e.org/1"}')
    with pytest.raises(DamagedFileError, match="is not fetched"):
        read_vocabulary(path)


@pytest.mark.parametrize(
    "context",
    [
        '[{"skos": "http://www.w3.org/2004/02/skos/core#"}, "http://192.0.2.1/c.json"]',
        '{"@import": "http://192.0.2.1/c.json"}',
        '{"t": {"@id": "http://e.org/t", "@context": "http://192.0.2.1/c.json"}}',
        '"other.json"',
    ],
)
def test_contexts_are_found_wherever_they_are(context: str, write: Write) -> None:
    write("other.json", '{"@context": {}}')
    path = write("v.jsonld", f'{{"@id": "http://e.org/1", "@context": {context}}}')
    with pytest.raises(DamagedFileError, match="is not in the file and is not fetched"):
        read_vocabulary(path)


RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="http://e.org/1"><skos:prefLabel>{}</skos:prefLabel></skos:Concept>
</rdf:RDF>"""
NESTED = '<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {outer} "{f"&{inner};" * 10}">'
    for inner, outer in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("entities", "text", "reason"),
    [
        (NESTED, "&i;", "'c' expands to more than 500 characters"),
        (NESTED, "nothing", "'c' expands to more than 500 characters"),
        (f'<!ENTITY a "{"a" * 10_000}">', "&a;" * 50_000, "'a' expands to more than 500"),
        (f'<!ENTITY a "{"a" * 500}">', "&a;" * 50_000, "longer than 1,000,000 characters"),
        ('<!ENTITY a "&b;"><!ENTITY b "&a;">', "&a;", "contains itself"),
        ('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;", "'a' is external and is not fetched"),
        ('<!ENTITY % p SYSTEM "http://192.0.2.1/x.dtd"> %p;', "a", "parameter entity 'p'"),
        (
            "<!ENTITY % p \"<!ENTITY a SYSTEM 'file:///etc/passwd'>\"> %p;",
            "&a;",
            "parameter entity 'p'",
        ),
        ("", "a" * 1_000_001, "longer than 1,000,000 characters"),
        ("", "<a>" * 5_000 + "</a>" * 5_000, "nested more than 1,000 levels deep"),
        (" " * 100_000, "a", "no XML element in the first 65,536 bytes"),
    ],
)
def test_hostile_rdf_xml_ends_at_once(entities: str, text: str, reason: str, write: Write) -> None:
    doctype = f"<!DOCTYPE rdf:RDF [{entities}]>" if entities else ""
    path = write("v.rdf", f'<?xml version="1.0"?>{doctype}{RDF_XML.format(text)}')
    started = time.process_time()
    with pytest.raises(DamagedFileError, match=reason) as caught:
        read_vocabulary(path)
    assert time.process_time() - started < 5
    assert "\n" not in str(caught.value)


def test_entities_for_namespaces_are_read(write: Write) -> None:
    doctype = '<!DOCTYPE rdf:RDF [<!ENTITY e "http://e.org/"><!ENTITY f "&e;f/">]>'
    content = RDF_XML.format("One &amp; &f;").replace('"http://e.org/1"', '"&e;1"')
    (concept,) = read_vocabulary(write("v.rdf", f"{doctype}{content}"))
    assert (concept.id, concept.name()) == ("http://e.org/1", "One & http://e.org/f/")


def test_deeply_nested_turtle_is_refused(write: Write) -> None:
    path = write("v.ttl", "<http://a> <http://b> " + "[<http://b> " * 50_000)
    with pytest.raises(DamagedFileError, match="nested too deeply"):
        read_vocabulary(path)


def test_language_of_a_vocabulary_is_checked(write: Write) -> None:
    path = write("v.tsv", "u:1\tBrot\t641.2\n")
    vocabulary = read_vocabulary(path, language="ger")
    assert vocabulary[0].names == {"de": "Brot"}
    assert vocabulary.resolve("641.2").column == 0
    with pytest.raises(VocabularyError, match="is not a language code"):
        read_vocabulary(path, language="Germanic")


def test_categories_of_a_vocabulary_without_tree_numbers(write: Write) -> None:
    branches = categories(read_vocabulary(write("v.ttl", TURTLE)))
    assert [(c.name, c.concepts) for c in branches] == [("Bread", 2), ("Beer", 1), ("Malt", 1)]


def test_table_with_header(write: Write) -> None:
    path = write(
        "v.tsv",
        "ui\tname\ttree_numbers\tentry_terms\n"
        "D1\tBread\tJ01\tLoaf|Loaves|\nD2\tBread, Rye\tJ01.1|K01\t\nD3\tOats\t\t\n",
    )
    bread, rye, oats = read_vocabulary(path)
    assert bread.synonyms == {"en": ("Loaf", "Loaves")}
    assert (rye.broader, rye.notations) == (("D1",), ("J01.1", "K01"))
    assert (oats.synonyms, oats.broader) == ({}, ())


def test_table_in_csv_with_languages(write: Write) -> None:
    path = write(
        "v.csv",
        "uri,label_en,label_de,notation,broader,deprecated,replaced_by\n"
        '<http://e.org/1>,"Bread, all",Brot,641,,,\n'
        "<http://e.org/2>,Rye,,642,<http://e.org/1>,true,<http://e.org/1>\n",
    )
    bread, rye = read_vocabulary(path)
    assert bread.names == {"en": "Bread, all", "de": "Brot"}
    assert rye.broader == rye.replaced_by == ("http://e.org/1",)
    assert rye.deprecated
    assert bread.notations == ("641",)


def test_annif_pairs_and_bad_rows(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("v.tsv", "<http://e.org/1>\tBread\nhttp://e.org/2\t\nhttp://e.org/1\tAgain\n\tX\n")
    vocabulary = read_vocabulary(path, language="de")
    assert [concept.names for concept in vocabulary] == [{"de": "Bread"}]
    assert len(caplog.messages) == 3
    assert "line 2: no name" in caplog.messages[0]


@pytest.mark.parametrize(
    ("name", "content", "error", "reason"),
    [
        ("v.tsv", "", FormatError, "empty"),
        ("v.tsv", b"\x00\x01", FormatError, "binary"),
        ("v.ttl", "@prefix broken", DamagedFileError, "not readable as RDF"),
        ("v.ttl", "<http://a> <http://b> <http://c> .", VocabularyError, "no concept"),
        ("v.xml", DESCRIPTORS[: len(DESCRIPTORS) // 2], DamagedFileError, "broken XML"),
        ("v.tsv", "only one column\n", VocabularyError, "no name in 1 of 1 row"),
        (
            "v.tsv.gz",
            gzip.compress(b"a\tb\n" * 10_000, mtime=0)[:-20],
            DamagedFileError,
            "gzip data is truncated",
        ),
    ],
)
def test_bad_files(
    name: str, content: str | bytes, error: type[Exception], reason: str, write: Write
) -> None:
    with pytest.raises(error, match=reason) as caught:
        read_vocabulary(write(name, content))
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(f"{name}: ") == 1


def test_missing_file_and_unknown_format(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_vocabulary(tmp_path / "v.tsv")
    with pytest.raises(FormatError, match="known: mesh-xml"):
        read_vocabulary(write("v.tsv", "a\tb"), format="marc")


@pytest.mark.shared
def test_real_mesh(shared_data: Path) -> None:
    vocabulary = read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")
    assert len(vocabulary) == 30_764
    assert vocabulary.find("Type 2 Diabetes Mellitus").name() == "Diabetes Mellitus, Type 2"
    assert len(categories(vocabulary)) == 16


@pytest.mark.shared
def test_real_gnd(shared_data: Path) -> None:
    assert len(read_vocabulary(shared_data / "tibkat" / "gnd-core-en.tsv.gz")) == 78_741


ARTICLE = '{"pmid": "1", "title": "x", "abstractText": "y", "meshMajor": ["Oats"]}'
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("c.json", f'{{"articles":[\n{ARTICLE}\n]}}', "a corpus (JSON with texts)"),
        ("c.jsonl", '{"id": "1", "title": "x", "labels": ["Oats"]}\n', "a corpus (JSON"),
        ("c.xml", "<PubmedArticleSet></PubmedArticleSet>", "a corpus (PubMed XML)"),
        ("c.tsv", "On rye\t<u:1> <u:2>\nOn oats\thttp://e.org/3\n", "a corpus (texts and"),
        ("c.csv", "id,title,labels\n1,x,Oats\n", "a corpus (a table with texts)"),
        ("v.ttl", POINTER, "a Git LFS pointer"),
        ("v.zip", b"PK\x03\x04" + bytes(30), "a zip archive; unpack it"),
    ],
)
def test_files_of_another_kind(name: str, content: str | bytes, reason: str, write: Write) -> None:
    path = write(name, content)
    with pytest.raises(WrongKindError) as caught:
        read_vocabulary(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.tsv", "<http://e.org/1>\tOats\n<http://e.org/2>\tRye\n"),
        ("v.tsv", "u1\tOats\nu2\tRye\n"),
        ("v.csv", "id,name,text\nu1,Oats,a grain\nu2,Rye,a grain\n"),
        ("v.tsv", "uri\tlabel\tabstract\nu1\tOats\tx\nu2\tRye\ty\n"),
    ],
)
def test_vocabularies_are_not_taken_for_corpora(name: str, content: str, write: Write) -> None:
    assert [concept.names["en"] for concept in read_vocabulary(write(name, content))] == [
        "Oats",
        "Rye",
    ]


def test_a_corpus_can_be_forced(write: Write) -> None:
    path = write("c.tsv", "On rye\t<u:1>\n")
    assert len(read_vocabulary(path, force=True)) == 1


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed(compress: Callable[[bytes], bytes], write: Write) -> None:
    packed = compress(TURTLE.encode())
    assert len(read_vocabulary(write("v.ttl.bz2", packed))) == len(
        read_vocabulary(write("v.ttl", TURTLE))
    )
    with pytest.raises(DamagedFileError, match="truncated"):
        read_vocabulary(write("v.ttl.xz", packed[:-8]))


@pytest.mark.shared
@pytest.mark.parametrize("name", ["mesh/decs2019-es", "yso/yso-fi", "yso/yso-en"])
def test_real_tables(name: str, shared_data: Path) -> None:
    assert len(read_vocabulary(shared_data / f"{name}.tsv.gz")) > 20_000


@pytest.mark.shared
@pytest.mark.parametrize(
    "name",
    [
        "mesh47k/dev.json.gz",
        "medline/pubmed20n0014.xml.gz",
        "yso/yso-finna-fi.tsv.gz",
        "yso/yso-finna-en.tsv.gz",
        "tibkat/orig.tsv.gz",
        "tibkat/en.tsv.gz",
        "tibkat/de.tsv.gz",
    ],
)
def test_real_corpora_are_refused(name: str, shared_data: Path) -> None:
    with pytest.raises(WrongKindError, match="looks like a corpus"):
        read_vocabulary(shared_data / name)


def test_skos_replaces(write: Callable[[str, str], Path]) -> None:
    path = write(
        "v.ttl",
        """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix e: <http://example.org/> .
e:loaf a skos:Concept ; skos:prefLabel "Loaf"@en ; owl:deprecated true .
e:dark a skos:Concept ; skos:prefLabel "Dark loaf"@en ; dct:replaces e:loaf .
e:light a skos:Concept ; skos:prefLabel "Light loaf"@en ; dct:replaces e:loaf .
""",
    )
    loaf = read_vocabulary(path).concept("http://example.org/loaf")
    assert loaf.replaced_by == ("http://example.org/dark", "http://example.org/light")
