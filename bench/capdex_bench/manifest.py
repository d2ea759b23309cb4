"""What a run must say about itself so that another can repeat it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from .documents import sha256_of
from .sets import QuerySet

PACKAGES: Final = ("capdex", "numpy", "faiss-cpu", "onnxruntime", "tokenizers")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _commit() -> str:
    """Return the commit of the working folder, with ``+`` when files differ from it; else empty."""
    git = shutil.which("git")
    if git is None:
        return ""
    head = subprocess.run([git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603
    changes = subprocess.run([git, "status", "--porcelain"], capture_output=True, text=True, check=False)  # noqa: S603
    return (head.stdout.strip() + ("+" if changes.stdout.strip() else "")) if head.returncode == 0 else ""


def _processor() -> str:
    """Return the processor's name where the system tells (Linux), else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _hashes(paths: Iterable[Path]) -> dict[str, str]:
    return {f"{path.parent.name}/{path.name}": sha256_of(path) for path in paths}


def run_manifest(
    sets: Sequence[QuerySet], *, systems: Sequence[str], encoder: str, seed: int, command: str
) -> dict[str, Any]:
    """Return versions, data hashes, seed and machine; no path and no user of this machine."""
    return {
        "command": command,
        "commit": _commit(),
        "systems": list(systems),
        "encoder": encoder,
        "seed": seed,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "machine": {
            "system": platform.system(),
            "processor": _processor(),
            "cores": os.cpu_count() or 1,
        },
        "data": {one.name: _hashes(one.files) for one in sets},
    }
