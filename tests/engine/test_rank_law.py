"""SPEC's law through the whole Searcher: among operations alike in all else, name >= summary >= path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from capdex_engine.operation import Operation
from capdex_engine.rank import Searcher

WORDS = ("invoice", "label", "webhook", "refund", "branch", "cluster", "template", "member")
FILLER = ("alpha", "bravo", "delta", "gamma", "kappa", "omega")


class WhimsicalEncoder:
    """An encoder that likes what it likes: every text has a random direction of its own."""

    identity = "whim"
    dimension = 16

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = []
        for text in texts:
            seed = int.from_bytes(text.encode()[-8:].rjust(8, b"\0"), "big") ^ len(text)
            rows.append(np.random.default_rng(seed).normal(size=self.dimension))
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@st.composite
def alike(draw: st.DrawFn) -> tuple[str, list[Operation], list[Operation]]:
    """Return a query, three operations that hold its word in name, summary and path, and bystanders."""
    hit, *others = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
    name, summary, path = draw(st.permutations(FILLER))[:3]
    method = draw(st.sampled_from(["GET", "POST", "DELETE"]))
    glue = draw(st.sampled_from(["_", "-", "."]))
    suffixes = draw(st.permutations(["1", "2", "3"]))

    def operation(suffix: str, where: str) -> Operation:
        def with_hit(text: str, field: str, joint: str) -> str:
            return f"{text}{joint}{hit}" if field == where else text

        return Operation(
            name=with_hit(name, "name", glue) + f"_{suffix}",
            source="s",
            method=method,
            path="/" + with_hit(path, "path", "/"),
            summary=with_hit(summary, "summary", " "),
            key=suffix,
        )

    triple = [operation(s, w) for s, w in zip(suffixes, ("name", "summary", "path"), strict=True)]
    bystanders = [Operation(name=f"{o}_tool", source="s", method="GET", path=f"/{o}") for o in others]
    query = " ".join(draw(st.permutations([hit, *others[:1]])))
    return query, triple, bystanders


@settings(deadline=None, max_examples=150)
@given(alike())
def test_a_hit_in_the_name_ranks_over_one_in_the_summary_over_one_in_the_path(
    case: tuple[str, list[Operation], list[Operation]],
) -> None:
    query, triple, bystanders = case
    searcher = Searcher.build([*bystanders, *triple], WhimsicalEncoder())
    hits = searcher.search(query, limit=20).hits
    places = {hit.operation.key: place for place, hit in enumerate(hits)}
    scores = {hit.operation.key: hit.score for hit in hits}
    in_order = [o.key for o in triple if o.key in places]
    assert len(in_order) in (0, 3)  # the floor takes all or none
    assert [places[k] for k in in_order] == sorted(places[k] for k in in_order)
    assert [scores[k] for k in in_order] == sorted((scores[k] for k in in_order), reverse=True)
