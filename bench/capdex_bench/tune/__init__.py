"""Fitting the blend, its calibration and its floor on APIs that the encoder never saw.

::

    material  the held-out APIs alone and several as one, and public training sets, in folds by whole API
    examples  each request as the blend sees it: candidates, features, gates, which of them are right
    fit       a listwise softmax and two logistics, by Newton's method
    figures   what the production searcher makes of requests that a fit did not see
    render    ``weights.py`` as text
    command   all of it, for ``capdex bench tune``

Golden sets and ``datasets`` are never read here.
"""
