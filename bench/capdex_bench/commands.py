"""What the commands of :mod:`.cli` do: files and the environment in, pages of text out."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from capdex_engine.encode import VectorStore, load_encoder
from capdex_engine.encode.lock import read_lock
from capdex_engine.encode.packages import require
from capdex_engine.errors import ConfigurationError, DocumentError
from capdex_engine.operation import Operation
from capdex_engine.rank.tool import SEARCH_INPUT

from .baseline import Baseline, Check, check, read_baseline, write_baseline
from .compare import Comparison, compare, comparison_json, comparison_markdown
from .evaluate import Result
from .figures import figures, markdown, table
from .formats import read_catalog, read_qrels, read_queries, read_rows, write_lines
from .intervals import SEED
from .latency_catalog import Stock, documents_in, golden_texts, made_up_stock, probe_texts, stock_of
from .manifest import run_manifest
from .measures import DEFAULT, Measure
from .peers import find_peers, run_peer
from .report import report_page
from .runs import production_run, read_run, write_run
from .sets import WITHOUT_DATA, QuerySet, load_documents, load_sets
from .suite import Say, Suite, load, run_suite, save
from .systems import ABLATIONS, SYSTEMS, Context, find_systems

PRODUCTION = "capdex"


def cache_folder() -> Path:
    """Return ``CAPDEX_CACHE``, or capdex's folder among the user's caches."""
    from platformdirs import user_cache_path

    named = os.environ.get("CAPDEX_CACHE")
    return Path(named) if named else user_cache_path("capdex")


def data_folder(given: Path | None) -> Path:
    """Return the data folder.

    Raises:
        ConfigurationError: When none is named, or it is not there.
    """
    if given is None:
        raise ConfigurationError(
            "say where documents and public sets lie: --data FOLDER, or CAPDEX_BENCH_DATA=FOLDER"
        )
    if not given.is_dir():
        raise ConfigurationError(f"the data folder {given} is not there")
    return given


def require_training(base: Path | None) -> None:
    """Check that what training imports is installed, the pinned weights' package not among it.

    Raises:
        ModelError: When it is not; the message says what to install.
    """
    beside = () if base else (read_lock().base_model.requirement,)
    require("bench train", ("sentence-transformers", "safetensors"), beside=beside)  # the first brings torch


def parse_measure(text: str) -> Measure:
    """Return the measure.

    Raises:
        ConfigurationError: When there is none of that name.
    """
    try:
        return Measure.parse(text)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def _writing(write: Callable[[], None], path: Path) -> None:
    try:
        write()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def run_queries(
    specs: Sequence[Path], catalog: Path | None, queries: Path, out: Path, *, limit: int, say: Say
) -> None:
    """Answer a query file with the production ranker and write the run file."""
    from capdex_engine.rank import Searcher

    cache = cache_folder()
    requests = read_queries(queries)
    if catalog:
        _say_duplicates(catalog, say)
    operations: Sequence[Operation] = read_catalog(catalog) if catalog else load_documents(specs, cache)
    encoder = load_encoder(cache, progress=say)
    searcher = Searcher.build(operations, encoder, store=VectorStore(cache / "vectors", encoder))
    faulty = {query.id: fault for query in requests if (fault := _fault_of(query.text))}
    fit = [query for query in requests if query.id not in faulty]
    answers, others = production_run(searcher, fit, limit=limit)
    refused = {**faulty, **others}
    _writing(lambda: write_run(out, answers), out)
    for query, reason in refused.items():
        say(f"query {query} was refused: {reason}")
    answered = sum(bool(found) for found in answers.values())
    say(f"{answered} of {len(requests)} queries answered over {len(operations)} operations: {out}")


def _fault_of(text: str) -> str | None:
    """Return why search_capabilities refuses a query as its input, or None."""
    if not text.strip():
        return "it is empty"
    longest = SEARCH_INPUT["properties"]["query"]["maxLength"]
    return f"it has more than {longest} characters" if len(text) > longest else None


def _say_duplicates(catalog: Path, say: Say) -> None:
    ids = Counter(str(row.get("_id", row.get("id"))) for _, row in read_rows(catalog))
    twice = [key for key, count in ids.items() if count > 1]
    if twice:
        shown = ", ".join(map(repr, twice[:5])) + (", …" if len(twice) > 5 else "")
        say(f"{catalog.name}: {len(twice)} ids stand in several rows, and only the first counts: {shown}")


def make_suite(
    sets: Sequence[QuerySet],
    systems: Sequence[str],
    *,
    command: str,
    say: Say,
    limit_seconds: float = math.inf,
) -> Suite:
    """Run systems on sets, with the pinned encoder."""
    cache = cache_folder()
    context = Context(
        cache,
        lambda: load_encoder(cache, progress=say),
        lambda: load_encoder(cache, pinned=read_lock().base, progress=say),
    )
    results = run_suite(
        sets,
        find_systems(systems),
        context,
        clock=time.perf_counter,
        say=say,
        limit_seconds=limit_seconds,
    )
    manifest = run_manifest(sets, systems=systems, encoder=context.identity, seed=SEED, command=command)
    return Suite(results, manifest)


def _sets(names: Sequence[str], data: Path | None, specs: Sequence[Path] = ()) -> tuple[QuerySet, ...]:
    needed = [name for name in names if name not in WITHOUT_DATA and not Path(name).is_file()]
    folder = data_folder(data) if needed else Path()
    return load_sets(names, folder, cache=cache_folder(), specs=specs)


def _write_suite(out: Path, suite: Suite, page: str) -> None:
    save(out, suite)
    write_lines(out / "results.json", [json.dumps(figures(suite), indent=1)])
    write_lines(out / "RESULTS.md", page.rstrip("\n").split("\n"))


def run_quality(
    sets: Sequence[str],
    systems: Sequence[str],
    data: Path | None,
    out: Path | None,
    *,
    limit_seconds: float,
    baseline: Path | None,
    say: Say,
    specs: Sequence[Path] = (),
) -> str:
    """Run the suite, write what was asked for, and return the Markdown page."""
    chosen = list(systems or SYSTEMS)
    if baseline is not None and PRODUCTION not in chosen:
        raise ConfigurationError(f"a baseline is made of {PRODUCTION}: add it to --systems")
    command = f"capdex bench quality --sets {','.join(sets)} --systems {','.join(chosen)}"
    suite = make_suite(
        _sets(sets, data, specs), chosen, command=command, say=say, limit_seconds=limit_seconds
    )
    page = markdown(suite)
    if out is not None:
        _writing(lambda: _write_suite(out, suite, page), out)
    if baseline is not None:
        made = Baseline.of(suite.of(PRODUCTION), DEFAULT[0])
        _writing(lambda: write_baseline(baseline, made), baseline)
    return page


def check_baseline(path: Path, data: Path | None, *, say: Say) -> tuple[str, bool]:
    """Run the baseline's sets again; return the page and whether nothing fell beyond the noise."""
    baseline = read_baseline(path)
    if data is None:
        say("no data folder (CAPDEX_BENCH_DATA): only the sets that need none are checked")
        baseline = baseline.only(WITHOUT_DATA)
    sets = _sets(list(baseline.sets), data)
    suite = make_suite(sets, [baseline.system], command="capdex bench quality --check", say=say)
    found = check(baseline, suite.results)
    return check_page(found, baseline), not found.failures


def check_page(found: Check, baseline: Baseline) -> str:
    """Return the verdict and the fallen queries."""
    said = ["FAILED:", *found.failures] if found.failures else ["passed"]
    parts = [f"{baseline.measure} against the baseline: {found.overall}; {' '.join(said)}\n"]
    if found.fallen:
        rows = [[query, f"{before:.3f}", f"{now:.3f}"] for query, before, now in found.fallen]
        parts.append(table(["fallen query", "baseline", "now"], rows))
    return "\n".join(parts)


def _results(suite: Suite, system: str) -> list[Result]:
    found = suite.of(system)
    if not found:
        raise ConfigurationError(f"no system {system!r} in that suite: it holds {', '.join(suite.systems)}")
    return found


def _compared(before: Sequence[Result], after: Sequence[Result], measure: str) -> Comparison:
    try:
        return compare(before, after, parse_measure(measure))
    except ValueError as error:
        raise DocumentError(f"{error}: only runs on the same sets can be compared") from error


def _write_json(out: Path | None, body: Any) -> None:
    if out is not None:
        _writing(lambda: write_lines(out, [json.dumps(body, indent=1, ensure_ascii=False)]), out)


def compare_suites(
    before: Path, after: Path, system: str, other: str, *, measure: str, out: Path | None
) -> str:
    """Compare a system of one suite's folder with a system of another's (or the same)."""
    old, new = _results(load(before), system), _results(load(after), other)
    comparison = _compared(old, new, measure)
    _write_json(out, comparison_json(comparison))
    return comparison_markdown(comparison)


def compare_runs(
    before: Path, after: Path, queries: Path, qrels: Path, *, measure: str, out: Path | None
) -> str:
    """Compare two run files on one query file with its labels."""
    of = QuerySet(name=queries.stem, queries=read_queries(queries), qrels=read_qrels(qrels))
    old, new = (Result(path.stem, of, read_run(path)) for path in (before, after))
    comparison = _compared([old], [new], measure)
    _write_json(out, comparison_json(comparison))
    return comparison_markdown(comparison)


def run_ablations(
    sets: Sequence[str],
    data: Path | None,
    out: Path | None,
    *,
    measure: str,
    limit_seconds: float,
    say: Say,
) -> str:
    """Run the production ranker whole and without each part; return what each is worth."""
    wanted = parse_measure(measure)
    systems = [PRODUCTION, *ABLATIONS]
    command = f"capdex bench ablate --sets {','.join(sets)} --measure {measure}"
    suite = make_suite(_sets(sets, data), systems, command=command, say=say, limit_seconds=limit_seconds)
    page = ablation_page(suite, wanted)
    if out is not None:
        _writing(lambda: _write_suite(out, suite, page), out)
    return page


def run_peers(
    sets: Sequence[str],
    names: Sequence[str],
    data: Path | None,
    out: Path | None,
    *,
    python: str,
    model: Path | None,
    limit_seconds: float,
    say: Say,
) -> str:
    """Run peers on sets, write what was asked for, and return the Markdown page."""
    chosen = find_peers(names, model)
    loaded = _sets(sets, data)
    results = []
    for one in loaded:
        operations = one.catalog(cache_folder())
        for peer in chosen:
            say(f"{one.name} {peer.name}")
            results.append(
                run_peer(peer, one, operations, python=python, limit_seconds=limit_seconds, model=model)
            )
    command = f"capdex bench peers --sets {','.join(sets)} --limit-seconds {limit_seconds:g}"
    systems = [peer.name for peer in chosen]
    manifest = run_manifest(
        loaded, systems=systems, encoder=model.name if model else "", seed=SEED, command=command
    )
    suite = Suite(tuple(results), manifest)
    page = markdown(suite)
    if out is not None:
        _writing(lambda: _write_suite(out, suite, page), out)
    return page


def ablation_page(suite: Suite, measure: Measure) -> str:
    """Return one table per group: each ablation's difference to the whole, with its interval."""
    parts = ["# Ablations\n"]
    for group in suite.groups:
        whole = suite.of(PRODUCTION, group)
        rows = []
        for system in suite.systems:
            found = compare(whole, suite.of(system, group), measure)
            rows.append([system, str(found.overall), str(len(found.risen)), str(len(found.fallen))])
        heading = ["system", f"difference in {measure}", "rose", "fell"]
        parts += [f"## {group}\n", table(heading, rows)]
    return "\n".join(parts)


def run_latency(
    specs: Sequence[Path], data: Path | None, *, operations: int, threads: int, as_json: bool, say: Say
) -> str:
    """Time searches over a catalog of a fixed size; return the page, or JSON.

    Without documents and without a data folder, operations and requests are made up.
    """
    from capdex_engine.rank import Searcher

    from .latency import measure
    from .latency_page import latency_json, latency_page

    stock, texts = _stock(specs, data, operations)
    say(stock.description)
    encoder = load_encoder(cache_folder(), progress=say, threads=threads)
    store = VectorStore(cache_folder() / "vectors", encoder)
    searcher = Searcher.build(stock.operations, encoder, store=store, progress=_saying(say))
    timings = measure(
        searcher, encoder, stock.schemas, texts, clock=time.perf_counter, processor=time.process_time
    )
    named = "".join(f" --spec {path.name}" for path in specs)
    command = f"capdex bench latency{named} --operations {operations} --threads {threads}"
    manifest = run_manifest((), systems=[PRODUCTION], encoder=encoder.identity, seed=SEED, command=command)
    if as_json:
        return json.dumps(latency_json(timings, stock, threads=threads, manifest=manifest), indent=1)
    return latency_page(timings, stock, threads=threads, manifest=manifest)


def _stock(specs: Sequence[Path], data: Path | None, wanted: int) -> tuple[Stock, tuple[str, ...]]:
    """Return what is searched, and the requests that fit it."""
    if not specs and data is None:
        return made_up_stock(wanted), probe_texts()
    documents = list(specs) or documents_in(data_folder(data))
    return stock_of(documents, wanted, cache_folder()), golden_texts()


def _saying(say: Say) -> Callable[[int, int], None]:
    """Return what tells of encoding, at most once per thousand texts."""
    told = -1

    def progress(done: int, total: int) -> None:
        nonlocal told
        if done < total and done // 1000 > told:
            told = done // 1000
            say(f"vectors: {done:,} of {total:,}")

    return progress


def write_report(folder: Path, out: Path) -> Path:
    """Write the HTML page of a suite's folder; return where it lies."""
    page = report_page(load(folder))
    _writing(lambda: write_lines(out, page.rstrip("\n").split("\n")), out)
    return out
