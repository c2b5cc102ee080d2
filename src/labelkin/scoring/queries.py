"""The input of methods: texts, their neighbours, and values computed for them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from labelkin.corpus.document import Document
from labelkin.exceptions import ConfigError, ModelMismatchError
from labelkin.memo import Memo
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.search import NeighbourSearch
from labelkin.represent.cache import TermCache
from labelkin.represent.term_columns import wording_of
from labelkin.represent.texts import Texts, vectors_key
from labelkin.scoring.policy import LabelPolicy, policy_for
from labelkin.scoring.suggestion import Naming
from labelkin.store.models import Loaded, Model, Models
from labelkin.store.snapshot import Snapshot, Views

if TYPE_CHECKING:
    from labelkin.neighbours.indexes import Indexes
    from labelkin.neighbours.vector_search import VectorSearch
    from labelkin.represent.encoder import Vectors
    from labelkin.scoring.mention_search import TextMatches
    from labelkin.scoring.mentions import Mentions

# What a batch keeps under keys of these kinds belongs to its documents, whatever the neighbours.
_OF_DOCUMENTS = ("terms", "vectors", "neighbours by")


class Queries(Texts):
    """A batch of documents to suggest headings for, on one snapshot and with its models.

    Languages, stems, names in the text and neighbours are computed when first
    needed and shared by ranking, cutting and explaining. `search` finds the
    neighbours; without it, `neighbours` must be given. `indexes` finds neighbours
    by other vectors, for methods that need both.
    """

    def __init__(
        self,
        views: Views,
        models: Models,
        documents: Sequence[Document],
        cache: TermCache,
        search: NeighbourSearch | None = None,
        *,
        neighbours: Neighbours | None = None,
        store_terms: bool = False,
        without_copies: bool = False,
        indexes: Indexes | None = None,
    ) -> None:
        super().__init__(
            views.snapshot,
            documents,
            cache,
            store_terms=store_terms,
            without_copies=without_copies,
        )
        self.views = views
        self.models = models
        self._search = search
        self._neighbours = neighbours
        self._indexes = indexes
        self._pinned = Memo()

    @property
    def snapshot(self) -> Snapshot:
        """The state of the collection that all results come from."""
        return self.views.snapshot

    def model(self, kind: type[Loaded]) -> Loaded:
        """A model of the collection; always the same one, even if it is trained again."""
        return self._pinned.get(kind.folder_name, lambda: self.models.get(kind))

    def pin(self, model: Model) -> None:
        """Use this model, whatever is trained meanwhile."""
        self._pinned.put(model.folder_name, model)

    def neighbours(self, k: int) -> Neighbours:
        """The `k` nearest documents of each; a smaller `k` later costs nothing."""
        if k == 0:
            return Neighbours.empty([document.id for document in self.documents])
        known = self._neighbours
        if known is None or (known.k < k and self._search is not None):
            if self._search is None:
                raise ConfigError("these queries have no neighbours")
            known = self._neighbours = self._search.search(self, k)
        return known.nearest(k)

    @property
    def search(self) -> NeighbourSearch | None:
        """What finds the neighbours."""
        return self._search

    def neighbours_by(self, encoder: str, k: int) -> Neighbours:
        """The `k` nearest documents of each by the vectors of an encoder, found once."""
        known: Neighbours | None = self._values.peek(("neighbours by", encoder))
        if known is None or (known.k < k and self._indexes is not None):
            known = self._search_by(encoder).search(self, k)
            self.given(("neighbours by", encoder), known)
        return known.nearest(k)

    def vectors(self, encoder: str) -> Vectors:
        """The vector of each document by an encoder, computed once."""
        known: Vectors | None = self._values.peek(vectors_key(encoder))
        return self._search_by(encoder).vectors(self) if known is None else known

    def give_vectors(self, encoder: str, vectors: Vectors, neighbours: Neighbours) -> None:
        """Set the vectors by an encoder and the neighbours by them, computed elsewhere."""
        self.given(vectors_key(encoder), vectors)
        self.given(("neighbours by", encoder), neighbours)

    def encoder_version(self, encoder: str) -> str:
        """The version of an encoder, found out without encoding anything."""
        return self._opened_indexes(encoder).encoder_version(self.views, encoder)

    def _search_by(self, encoder: str) -> VectorSearch:
        return self._opened_indexes(encoder).vector_search(self.views, encoder)

    def _opened_indexes(self, encoder: str) -> Indexes:
        if self._indexes is None:
            raise ModelMismatchError(
                f"these queries cannot be searched by {encoder}, only by their given neighbours; "
                "use another method, or a reranker without an encoder"
            )
        return self._indexes

    def with_neighbours(self, neighbours: Neighbours) -> Queries:
        """The same documents on the same state with other neighbours."""
        other = copy(self)
        other._search = None
        other._neighbours = neighbours
        other._values = Memo()
        for key in self._values.keys():  # noqa: SIM118 - not a dictionary
            if key in ("prepared", "matches", "mentions") or _is_of_documents(key):
                other.given(key, self._values.peek(key))
        return other

    def within_depth(self, ks: Sequence[int]) -> list[int]:
        """The values of k in `ks` that the neighbours allow."""
        known = self._neighbours
        if known is None or self._search is not None:
            return list(ks)
        return [k for k in ks if k <= known.k] or [known.k]

    def policy(
        self, include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> LabelPolicy | None:
        """Which labels may be suggested; None if all may."""
        return policy_for(self.snapshot, include, exclude)

    def mentions(self, policy: LabelPolicy | None = None) -> Mentions:
        """The concepts that the texts name, as far as a policy allows them."""
        mentions = self.once("mentions", lambda: self._matches().mentions())
        return mentions if policy is None else mentions.allowed(policy.target)

    def wording(self) -> list[list[str]]:
        """All words of each document, stop words and numbers too; see `wording_of`."""
        return self.once("wording", lambda: wording_of(self.prepared))

    def namings(self, place: int) -> dict[int, tuple[Naming, ...]]:
        """The words by which one document names each concept, the strongest first."""
        return self._matches().namings(place, self.documents[place])

    def _matches(self) -> TextMatches:
        from labelkin.scoring.mention_search import MentionSearch

        return self.once("matches", lambda: MentionSearch.of(self.snapshot).matches(self.prepared))

    def part(self, places: slice) -> Queries:
        """Some of the documents, with the neighbours that have been found."""
        part = Queries(
            self.views,
            self.models,
            self.documents[places],
            self._cache,
            self._search,
            neighbours=None if self._neighbours is None else self._neighbours[places],
            store_terms=self.store_terms,
            without_copies=self.without_copies,
            indexes=self._indexes,
        )
        part._pinned = self._pinned
        part.given("prepared", self.prepared[places])
        for key in self._values.keys():  # noqa: SIM118 - not a dictionary
            if _is_of_documents(key):
                part.given(key, self._values.peek(key)[places])
        return part


def _is_of_documents(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[0] in _OF_DOCUMENTS
