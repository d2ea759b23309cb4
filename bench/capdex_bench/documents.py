"""The documents that the golden queries speak of: a manifest here, the files elsewhere.

Third-party documents are not part of the project. The manifest (``golden/documents.tsv``) says
where each comes from and pins it by sha256; whoever runs the bench names the folder they lie in.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capdex_engine.errors import DocumentError

GOLDEN: Final = Path(__file__).parent / "golden"
"""Own queries and labels, one folder per document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One line of the manifest."""

    file: str
    origin: str
    """GitHub repository, or ``npm PACKAGE``."""
    commit: str
    """Commit, or the package's version."""
    path: str
    licence: str
    origin_sha256: str
    """Of the file as its origin gives it."""
    sha256: str
    """Of the team's copy; equal to ``origin_sha256`` where the copy was not normalised."""

    @property
    def name(self) -> str:
        """The file's name without its last ending: the golden set's and the source's name."""
        return Path(self.file).stem

    def find(self, folder: Path) -> Path:
        """Return where the document lies in ``folder`` (or its ``specs``), with its hash checked.

        Raises:
            DocumentError: When it is absent, or is another version than the manifest pins.
        """
        for path in (folder / self.file, folder / "specs" / self.file):
            if path.is_file():
                self._check(path)
                return path
        raise DocumentError(
            f"{self.file} is not in {folder}. Get it from {self.origin} ({self.commit}, {self.path}), or "
            "set CAPDEX_BENCH_DATA to the folder that holds it.",
            location=str(folder / self.file),
        )

    def _check(self, path: Path) -> None:
        found = sha256_of(path)
        if found not in {self.sha256, self.origin_sha256}:
            raise DocumentError(
                f"{self.file} is not the pinned version: sha256 {found}, expected {self.sha256} (or "
                f"{self.origin_sha256}, as {self.origin} has it at {self.commit}).",
                location=str(path),
            )


def sha256_of(path: Path) -> str:
    """Return the hex sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path = GOLDEN / "documents.tsv") -> Mapping[str, Document]:
    """Return the manifest's documents by golden set name, in its order."""
    with path.open(encoding="utf-8", newline="") as file:
        documents = [Document(**row) for row in csv.DictReader(file, delimiter="\t")]
    return {document.name: document for document in documents}
