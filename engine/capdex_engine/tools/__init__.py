"""The tools of upstream MCP servers, collected under hard limits (SPEC section 6).

Codes of :class:`~capdex_engine.errors.ToolCatalogError`, and of what is put in quarantine:

============================== ============================================================== ==========
code                           when                                                           concerns
============================== ============================================================== ==========
MCP_CATALOG_PAGE_LIMIT         more than 20 pages                                             the server
MCP_CATALOG_ITEM_LIMIT         more than 2,000 tools                                          the server
MCP_CATALOG_BYTE_LIMIT         more than 8 MiB, as compact JSON of the fields that are kept   the server
MCP_CATALOG_CURSOR_LIMIT       a cursor of more than 16 KiB                                   the server
MCP_CATALOG_CURSOR_LOOP        a cursor comes again                                           the server
MCP_CATALOG_TIMEOUT            a page takes more than 5 seconds, or all of them more than 30  the server
MCP_CATALOG_INVALID_PAGE       an answer that is no page of tools                             the server
MCP_CATALOG_SCHEMA_TOO_LARGE   a schema of more than 512 KiB, as compact JSON                 one tool
MCP_CATALOG_SCHEMA_TOO_DEEP    a schema of more than 64 levels of objects and lists           one tool
MCP_CATALOG_SCHEMA_CYCLE       a schema that holds itself (not: that refers to itself)        one tool
MCP_CATALOG_INVALID_TOOL       name, title, description or schema is none, or is too long     one tool
MCP_CATALOG_DUPLICATE_TOOL     a name comes again; the first counts                           one tool
============================== ============================================================== ==========
"""

from capdex_engine.tools.collect import ListPage, ToolCollection, collect_tools
from capdex_engine.tools.limits import Code, ToolLimits
from capdex_engine.tools.measure import measure
from capdex_engine.tools.read import Quarantined

__all__ = [
    "Code",
    "ListPage",
    "Quarantined",
    "ToolCollection",
    "ToolLimits",
    "collect_tools",
    "measure",
]
