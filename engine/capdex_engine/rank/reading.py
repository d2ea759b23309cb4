"""A request as it stands, and as it would read in correct English."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex_engine.rank.languages import gloss, warm_up
from capdex_engine.rank.lexical import LexicalIndex
from capdex_engine.rank.spelling import Speller

SPELT: Final = 0.6
GLOSSED: Final = 0.7
"""Share of the vector that the second reading has, where there is one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One request; ``english`` is ``text`` itself where nothing had to be done."""

    text: str
    english: str
    share: float = 0.0
    """Of ``english`` in the vector."""
    language: str | None = None
    """Which language it was put into English from."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What has to be encoded: one text or two."""
        return (self.text,) if self.english == self.text else (self.text, self.english)

    def vector(self, encoded: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the request's vector, length 1, from those of :attr:`texts`."""
        result: NDArray[np.float32] = encoded[0]
        if len(encoded) == 1:
            return result
        mixed = (1.0 - self.share) * encoded[0] + self.share * encoded[1]
        result = mixed / max(float(np.linalg.norm(mixed)), 1e-9)
        return result


class RequestReader:
    """Reads requests against a catalog; safe to share between threads."""

    def __init__(self, lexical: LexicalIndex) -> None:
        warm_up()
        self._lexical = lexical
        self._speller = Speller(lexical.postings.vocabulary)

    def within(self, lexical: LexicalIndex) -> RequestReader:
        """Return the same for a part of the catalog (:meth:`LexicalIndex.within`)."""
        other = copy(self)
        other._lexical = lexical
        other._speller = self._speller.within(lexical)
        return other

    def read(self, text: str) -> Reading:
        """Put ``text`` into English, unless the catalog speaks its language, or correct its spelling."""
        found = gloss(text)
        if found is None:
            return Reading(text, self._speller.correct(text), SPELT)
        own, english = (self._lexical.known(self._lexical.terms(one)) for one in (text, found.text))
        if own > 0 and own >= english:
            return Reading(text, text, language=found.language)
        return Reading(text, found.text, GLOSSED, found.language)
