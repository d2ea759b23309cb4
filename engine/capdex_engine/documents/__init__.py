"""Bytes to documents: JSON and YAML, Swagger 2.0, references, schemas.

The order of use: :func:`parse_document`, :func:`upgrade`, :class:`References`,
:func:`translate_schema`. Nothing here opens a socket; other files are read through a callable.
"""

from capdex_engine.documents.files import folder_retrieve
from capdex_engine.documents.keywords import refs_in
from capdex_engine.documents.parse import parse_document
from capdex_engine.documents.read_only import ReadOnly
from capdex_engine.documents.references import References, Resolved, Retrieve
from capdex_engine.documents.schemas import translate_schema
from capdex_engine.documents.shown import shown
from capdex_engine.documents.upgrade import upgrade
from capdex_engine.documents.upgrade_parts import DELIMITER, INNER_FORMAT
from capdex_engine.documents.values import text_of

__all__ = [
    "DELIMITER",
    "INNER_FORMAT",
    "ReadOnly",
    "References",
    "Resolved",
    "Retrieve",
    "folder_retrieve",
    "parse_document",
    "refs_in",
    "shown",
    "text_of",
    "translate_schema",
    "upgrade",
]
