"""Small valid files of every kind that labelkin reads, made here; mutations start from them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma

import numpy as np

RECORDS = [
    {
        "id": str(number),
        "title": f"On rye {number}",
        "abstract": "Dense and dark, from März to May.\nSecond line.",
        "labels": ["D000001", {"id": "D000002", "name": "Bread, Rye", "major": True}],
        "major_labels": ["D000001"],
        "language": "en",
        "year": 2000 + number,
        "fields": {"note": "a note"},
        "metadata": {"journal": "J", "nested": [1, 2.5, None, {"a": True}]},
    }
    for number in range(3)
]
_LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
_ANNIF_LINES = "".join(
    json.dumps(
        {
            "document_id": f"a{number}",
            "text": "Oats at dawn",
            "metadata": {"title": "Oats"},
            "subjects": [{"uri": "http://example.org/1", "label": "Oats"}],
        }
    )
    + "\n"
    for number in range(2)
).encode()
_BIOASQ = json.dumps(
    {
        "articles": [
            {
                "pmid": str(number),
                "title": "T",
                "abstractText": "Some text",
                "meshMajor": ["Bread", "Oats"],
                "year": "1999",
                "journal": "J",
            }
            for number in range(2)
        ]
    }
).encode()
_PUBMED = b"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2024//EN" "x.dtd">
<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="1">7</PMID>
<DateRevised><Year>2020</Year><Month>02</Month><Day>03</Day></DateRevised>
<Article><Journal><JournalIssue><PubDate><Year>1977</Year></PubDate></JournalIssue>
<Title>J</Title></Journal><ArticleTitle>On <i>rye</i> &amp; oats</ArticleTitle>
<Abstract><AbstractText Label="AIM">Dense.</AbstractText></Abstract><Language>eng</Language>
</Article><MeshHeadingList><MeshHeading><DescriptorName UI="D000001" MajorTopicYN="Y">Bread
</DescriptorName><QualifierName UI="Q000001" MajorTopicYN="N">use</QualifierName></MeshHeading>
</MeshHeadingList></MedlineCitation></PubmedArticle>
<DeleteCitation><PMID>9</PMID></DeleteCitation></PubmedArticleSet>
"""
_CSV = (
    b"id,title,abstract,labels,language,year,field.note,metadata\n"
    b'1,"On ""rye""","a\nb",D1|D2,en,1999,x,"{""k"": 1}"\n2,T,B,"[""a|b""]",de,,,\n'
)
_TSV = b"id\ttitle\ttext\tlabels\n1\tOn rye\tdense\tD1|D2\n2\tOn oats\t\t\n"
_ANNIF_TSV = (
    b"On rye \xc2\xa4 dense\t<http://example.org/1> <http://example.org/2>\n"
    b"On oats\t<http://example.org/1>\n"
)
CORPORA = {
    "jsonl": [_LINES, b"\xef\xbb\xbf" + _LINES.replace(b"\n", b"\r\n"), gzip.compress(_LINES)],
    "annif-jsonl": [_ANNIF_LINES, bz2.compress(_ANNIF_LINES)],
    "bioasq": [_BIOASQ, json.dumps(RECORDS).encode(), lzma.compress(_BIOASQ)],
    "pubmed": [_PUBMED, gzip.compress(_PUBMED)],
    "csv": [_CSV, _CSV.replace(b",", b";")],
    "tsv": [_TSV],
    "annif-tsv": [_ANNIF_TSV, gzip.compress(_ANNIF_TSV)[:-9]],
}
EXTENSIONS = {
    "jsonl": ".jsonl",
    "annif-jsonl": ".jsonl",
    "bioasq": ".json",
    "pubmed": ".xml",
    "csv": ".csv",
    "tsv": ".tsv",
    "annif-tsv": ".tsv",
}

_MESH = b"""<?xml version="1.0"?><DescriptorRecordSet LanguageCode="eng">
<DescriptorRecord DescriptorClass="1"><DescriptorUI>D000001</DescriptorUI>
<DescriptorName><String>Bread</String></DescriptorName>
<TreeNumberList><TreeNumber>J02.500</TreeNumber></TreeNumberList>
<ConceptList><Concept PreferredConceptYN="Y"><TermList><Term><String>Loaf</String></Term>
</TermList></Concept></ConceptList></DescriptorRecord></DescriptorRecordSet>
"""
_TURTLE = b"""@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/> .
:a a skos:Concept ; skos:prefLabel "Bread"@en, "Brot"@de ; skos:altLabel "Loaf"@en ;
  skos:notation "A01" ; skos:topConceptOf :s .
:b a skos:Concept ; skos:prefLabel "Rye bread"@en ; skos:broader :a ; skos:related :a .
:g a skos:Collection ; skos:prefLabel "Group"@en ; skos:member :a, :b .
"""
_RDF = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="http://example.org/a"><skos:prefLabel xml:lang="en">Bread</skos:prefLabel>
<skos:broader rdf:resource="http://example.org/b"/></skos:Concept>
<skos:Concept rdf:about="http://example.org/b"><skos:prefLabel>Food</skos:prefLabel></skos:Concept>
</rdf:RDF>
"""
_TRIPLES = (
    b"<http://example.org/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
    b"<http://www.w3.org/2004/02/skos/core#Concept> .\n"
    b"<http://example.org/a> <http://www.w3.org/2004/02/skos/core#prefLabel> "
    b'"Br\\u00f6d"@en .\n'
)
_JSON_LD = json.dumps(
    {
        "@context": {"skos": "http://www.w3.org/2004/02/skos/core#"},
        "@graph": [
            {
                "@id": "http://example.org/a",
                "@type": "skos:Concept",
                "skos:prefLabel": {"@value": "Bread", "@language": "en"},
            }
        ],
    }
).encode()
_TABLE = b"ui\tname\ttree_numbers\tentry_terms\nD000001\tBread\tJ01\tLoaf|Bun\nD000002\tOats\t\t\n"
# By the extension of the file.
VOCABULARIES = {
    "mesh.xml": [_MESH],
    "skos.ttl": [_TURTLE],
    "skos.rdf": [_RDF],
    "skos.nt": [_TRIPLES],
    "skos.jsonld": [_JSON_LD],
    "table.tsv": [_TABLE, b"<http://example.org/1>\tBread\n<http://example.org/2>\tOats\n"],
}

CONFIG = b'[suggest]\nmethod = "knn"\nk = 12\n[knn]\n'


def neighbour_set() -> bytes:
    """A saved neighbour set."""
    file = io.BytesIO()
    np.savez(
        file,
        ids=np.array(["a", "b"]),
        rows=np.array([[0, 1], [1, -1]]),
        scores=np.array([[2.0, 1.0], [1.0, 0.0]]),
        own_scores=np.array([3.0, 2.0]),
        fingerprint=np.array('{"k": 2}'),
        duplicates=np.array('[["a", 3]]'),
    )
    return file.getvalue()


def matrix_file() -> bytes:
    """Predictions as a sparse matrix."""
    from scipy.sparse import csr_matrix, save_npz

    file = io.BytesIO()
    save_npz(file, csr_matrix(np.array([[0.5, 0, 1], [0, 0, 0.25]])), compressed=True)
    return file.getvalue()


LABEL_FILES = {
    "labels.jsonl": [_LINES, b'{"id": "1", "labels": ["a"]}\n{"id": "2", "labels": []}\n'],
    "predictions.tsv": [b"1\tD000001\t0.9\n1\tD000002\t0.5\n2\tD000001\t1\n"],
    "gold.txt": [b"1 2 3\n\n4\n"],
    "annif.jsonl": [
        b'{"results": [{"uri": "http://example.org/1", "label": "Oats", "score": 0.5}]}\n'
    ],
    "bioasq.json": [b'{"documents": [{"pmid": 1, "labels": ["D000001"]}]}'],
    "results.csv": [b"id,rank,label,name,score,band,title\n1,1,D1,Oats,0.5,accept,T\n"],
}

BODIES = [
    json.dumps(
        {
            "documents": [{"id": "1", "title": "Potatoes", "text": "late blight"}],
            "limit": 5,
            "threshold": 0.1,
            "method": "knn",
            "language": "en",
            "include": [],
            "explain": True,
        }
    ).encode(),
    json.dumps({"document": {"title": "Potatoes"}, "heading": "Potatoes", "k": 3}).encode(),
    json.dumps(RECORDS[0]).encode(),
    json.dumps({"labels": ["Potatoes"], "label_names": {"a": "b"}}).encode(),
]
