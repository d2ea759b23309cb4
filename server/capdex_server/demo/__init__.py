"""Workforce: a small API of our own, so that capdex has something to search and call out of the box.

``workforce.yaml`` is the contract. The app builds its routes and its request checks from it, and
the handlers hold the rules of the business. The data is made up.
"""

from __future__ import annotations

from capdex_server.demo.app import create_demo_app
from capdex_server.demo.document import API_KEY_HEADER, DEMO_SOURCE_NAME, demo_document, demo_location
from capdex_server.demo.serve import run_in_thread

__all__ = [
    "API_KEY_HEADER",
    "DEMO_SOURCE_NAME",
    "create_demo_app",
    "demo_document",
    "demo_location",
    "run_in_thread",
]
