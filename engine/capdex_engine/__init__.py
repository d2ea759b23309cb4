"""capdex's engine: API descriptions in, a searchable catalog and safe calls out.

The engine touches no network, clock or environment: fetching, sending and time are passed in,
and disk is used only in folders it is handed.
"""

__version__ = "0.1.0"
