"""The tools of a server as one document, so that they are cached, compared and kept like any other.

``{"server": {"name", "title"?, "version"?}, "tools": [...], "quarantine": [{"name", "code", "message"}]}`` in
UTF-8. Tools are sorted by name, so that a server that shuffles them changes nothing; the members of a schema
keep their order, in which a reader meets them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from capdex_engine.errors import DocumentError

if TYPE_CHECKING:
    from capdex_engine.tools.collect import ToolCollection

_SERVER: Final = ("name", "title", "version")
MAX_SERVER_TEXT: Final = 200
"""Characters of what a server says of itself."""


def tool_document(found: ToolCollection, server: Mapping[str, Any] | None = None) -> bytes:
    """Return the document of what a server lists.

    Args:
        found: Its tools.
        server: What it says of itself: ``name``, ``title``, ``version``.
    """
    about = {key: value for key in _SERVER if isinstance(value := (server or {}).get(key), str)}
    document = {
        "server": {key: value[:MAX_SERVER_TEXT] for key, value in about.items()},
        "tools": sorted(found.tools, key=lambda tool: str(tool["name"])),
        "quarantine": [fault.to_json() for fault in found.quarantine],
    }
    # In ASCII: a half of a surrogate pair, which UTF-8 cannot carry, stays what it is.
    return json.dumps(document, separators=(",", ":"), default=_plain).encode("ascii")


def read_tool_document(data: bytes, *, location: str) -> dict[str, Any]:
    """Return what :func:`tool_document` wrote.

    Raises:
        DocumentError: It is something else, such as a damaged copy.
    """
    try:
        document = json.loads(data)
        sound = all(isinstance(document[key], list) for key in ("tools", "quarantine"))
        sound = sound and isinstance(document["server"], dict)
    except (ValueError, LookupError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise DocumentError("This is no list of tools.", location=location)
    return document  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    """Return a mapping that is no dict as one; everything else has been measured."""
    return dict(value)
