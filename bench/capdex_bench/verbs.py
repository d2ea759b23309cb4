"""Short requests over GitHub's document: a verb and a noun, as people type them.

"Create an issue", "merge a pull request", "star a repository": requests that nobody forgives a
search for missing, among 1,200 operations that share those nouns. They guard the ranker, as probes do,
and no figure of quality includes them. Requests and labels lie in ``regressions/github-verbs``; the
document is that of the golden set ``github-rest``, looked up and pinned in the same way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .documents import read_manifest
from .formats import read_qrels, read_queries
from .sets import QuerySet

NAME: Final = "github-verbs"
GROUP: Final = "verbs"
DOCUMENT: Final = "github-rest"
"""The manifest's name of the document that the requests are put to."""
FOLDER: Final = Path(__file__).parent / "regressions" / NAME


def verb_set(data: Path) -> QuerySet:
    """Return the set; its document is looked up in ``data`` and checked by sha256.

    Raises:
        DocumentError: When the document is absent (the message says where to get it), or another version.
    """
    queries, qrels = FOLDER / "queries.jsonl", FOLDER / "qrels.tsv"
    document = read_manifest()[DOCUMENT].find(data)
    return QuerySet(
        name=NAME,
        group=GROUP,
        queries=read_queries(queries),
        qrels=read_qrels(qrels),
        documents=(document,),
        files=(queries, qrels, document),
    )
