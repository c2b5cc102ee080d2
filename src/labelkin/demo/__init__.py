"""A synthetic collection for demonstrations, tests and benchmarks without a network.

It is about the farms, gardens, rivers and coasts of Ellmark, an invented country, and contains
the signals that labelkin uses in known amounts.

**Headings** (`demo_concepts`): 1,079 in eight categories, up to five levels deep. 14 % have two
parents, mostly by aspect ("Wheat Diseases" below "Wheat" and "Crop Diseases"), and so two tree
numbers or more. Synonyms are everyday words, Latin names, acronyms and inverted forms; a dozen
("Corn", "Blight", "Mills") belong to two headings. About 80 % have a German name. Three headings
are deprecated, with a replacement.

**Labels** (`demo_documents`): 2 to 12 a document, 6 on average. Three check tags ("Ellmark",
"Field Studies", "Seasons") are on 10 to 20 % of the documents, seven more on about 5 to 8 %. The
others come from 80 latent topics of eight realms (field, garden, coast, ...), each with a bundle
of headings under Zipf-like weights; 8 % of the documents mix two topics. Some 200 headings have
companions that mostly come along, as potatoes do with late blight. One label in twenty is a
relative of another in the hierarchy, one in twenty is drawn from all headings. In 4,000 documents
about a third of the headings occur 1 to 5 times and 15 % never.

**Texts**: what a text is about is in it: a label appears by its preferred name (half of them), by
a synonym or by topic words that its siblings partly share. Only a label that follows from another
one of the document (a companion, a broader heading) can be absent; that is one in twelve of all.
Places are always named. The title names one or two labels. A body of about 110 words also holds
up to three headings that the document does not carry and filler sentences that all documents
share. A majority vote over the 20 nearest documents by BM25 reaches a micro-F of about 0.58.

**Seeds**: the collection is a pure function of `seed`. Every document has its own random generator,
so `demo_documents(100)` is the beginning of `demo_documents(200)`. Ids, names and hierarchy do not
depend on the seed; synonyms, related headings, topics and documents do, so use documents with
`demo_concepts` of the same seed.
"""

from __future__ import annotations

from labelkin.demo.documents import demo_documents
from labelkin.demo.headings import demo_concepts

__all__ = ["demo_concepts", "demo_documents"]
