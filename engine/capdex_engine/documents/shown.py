"""How a file is named to callers: they see what the document is made of, never this machine's folders."""

from __future__ import annotations

import posixpath


def shown(identity: str, root: str = "") -> str:
    """Return the name of a file, with its folders where it lies below the folder of ``root``.

    Args:
        identity: URL or file path.
        root: Identity of the root document.
    """
    folder = root.rpartition("/")[0] + "/"
    if len(folder) > 1 and identity.startswith(folder) and ".." not in identity[len(folder) :].split("/"):
        return identity[len(folder) :]
    scheme, mark, rest = identity.partition("://")
    path = rest.partition("/")[2].partition("?")[0].partition("#")[0] if mark else scheme
    return posixpath.basename(path.rstrip("/")) or "another file"
