"""Ranking: a request in anybody's words -> the operations it means."""

from capdex_engine.rank.dense import operation_text
from capdex_engine.rank.searcher import Hit, Searcher, SearchResult

__all__ = ["Hit", "SearchResult", "Searcher", "operation_text"]
