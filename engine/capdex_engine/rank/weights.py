"""Fitted numbers of the blend: feature -> gate -> weight (:mod:`capdex_engine.rank.blend`).

Fitted on training requests: 60 documents of own-written ones, four catalogs of 15 of these
documents each, and public training sets; a third of the documents and one public set at a time were
held out to choose features and regularisation.
"""

from collections.abc import Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {
    "meaning": {
        "always": 25.51,
        "short": 14.7,
        "known": -10.17,
        "best_words": 10.73,
        "best_meaning": -20.31,
        "foreign": -21.41,
    },
    "words": {
        "always": -0.66,
        "short": 0.15,
        "known": 0.01,
        "best_words": 0.67,
        "best_meaning": 0.28,
        "foreign": 0.07,
    },
    "words_share": {
        "always": 0.04,
        "short": -0.65,
        "known": 2.05,
        "best_words": -0.67,
        "best_meaning": 2.25,
        "foreign": 1.79,
    },
    "name_fill": {
        "always": -0.72,
        "short": -1.37,
        "known": 2.35,
        "best_words": -0.35,
        "best_meaning": 1.96,
        "foreign": 0.43,
    },
    "summary_fill": {
        "always": -0.71,
        "short": -0.56,
        "known": 1.29,
        "best_words": 0.1,
        "best_meaning": 1.3,
        "foreign": 0.2,
    },
    "same": {"always": 5.0},
    "method": {"always": 0.5},
    "collection": {"always": 0.33},
    "deprecated": {"always": -0.3},
}
"""Listwise softmax over each request's candidates, L2 3e-4; two rows are set by hand, since the
training requests hold neither case: ``deprecated`` is small enough to part twins only, ``same`` large enough
to carry a request that says just a name's or a summary's words."""

CALIBRATION: Final[Mapping[str, float]] = {
    "utility": 0.821,
    "always": -4.842,
    "short": -3.467,
    "known": 2.151,
    "best_words": -6.01,
    "best_meaning": -4.645,
    "foreign": 3.115,
}
"""Logistic over the first ten of each request: the utility's slope, and each gate's shift."""

SERVED: Final[Mapping[str, float]] = {"logit": 1.0, "always": 4.6}
"""Logistic over the best of each request."""
