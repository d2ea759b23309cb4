"""Packages that serving does without: what to install where one is needed after all."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

from ..errors import ModelError

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def require(purpose: str, packages: Sequence[str], *, beside: Sequence[str] = ()) -> None:
    """Refuse to begin where packages are absent; nothing is imported for it.

    Args:
        purpose: What needs them, as the subject of a sentence.
        packages: Their names on PyPI; each is imported by the same name, with ``_`` for ``-``.
        beside: Further requirements to name, as pip writes them, when one of ``packages`` is absent.

    Raises:
        ModelError: One is not installed; the message is the line to type.
    """
    absent = [name for name in packages if importlib.util.find_spec(name.replace("-", "_")) is None]
    if absent:
        line = " ".join(f"'{one}'" for one in (*map(requirement, absent), *beside))
        verb = "is" if len(absent) == 1 else "are"
        raise ModelError(
            f"{purpose} needs {' and '.join(absent)}, which {verb} not installed: serving does without. "
            f"Run: pip install {line}"
        )


def requirement(package: str) -> str:
    """Return a package with the versions that capdex asks for; the bare name where it asks for none."""
    try:
        asked = requires("capdex") or []
    except PackageNotFoundError:  # a checkout on the path, never installed
        asked = []
    plain = (line.partition(";")[0].strip() for line in asked if "extra ==" not in line)
    return next((line for line in plain if _name(line) == _name(package)), package)


def _name(line: str) -> str:
    found = _NAME.match(line)
    return found.group().lower().replace("_", "-").replace(".", "-") if found else ""
