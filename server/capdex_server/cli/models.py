"""``capdex models``: verify the pinned encoder, or say where its files are."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from capdex_server.cli.output import progress, reported_errors


def verify() -> None:
    """Check the encoder's files against models.lock; one that is not shipped is exported when missing.

    Example: capdex models verify
    """
    with reported_errors(as_json=False):
        from capdex_engine.encode.canonical import require_canonical
        from capdex_engine.encode.lock import model_folder, read_lock, verify_files
        from capdex_engine.encode.prepare import prepare_encoder

        model = read_lock().model
        verify_files(model, model_folder(model))
        require_canonical(model, prepare_encoder(_cache(), model, progress))
        typer.echo(f"{model.name}: its files and its canonical vector are as models.lock pins them")


def path() -> None:
    """Print the folder that holds the served encoder; an export may not be there yet.

    Example: capdex models path
    """
    with reported_errors(as_json=False):
        from capdex_engine.encode.lock import read_lock
        from capdex_engine.encode.prepare import encoder_folder

        typer.echo(str(encoder_folder(_cache(), read_lock().model)))


def _cache() -> Path:
    from capdex_server.config import load_settings

    return load_settings(None, os.environ).cache
