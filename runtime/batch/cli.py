"""Command line -> kinst-batch. The only file of this package that uses click."""

import os
import signal
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kinst.rewriter.commandline import shared
from kinst.rewriter.commandline.apart import NamedFile
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.commandline.help import Example
from kinst.rewriter.commandline.option import Choice, option
from kinst.rewriter.commandline.reporting import check_files, reported, unescaped
from kinst.rewriter.shell.progress import Progress, bars, silent
from kinst.targets.errors import UsageError
from kinst.targets.signals import exit_on_termination

if TYPE_CHECKING:
    from kinst.runtime.batch.batch_file import Batch
    from kinst.runtime.batch.input_files import FileTable

_NAME: Final = "kinst-batch"
_WHAT: Final = "What is done with each image"
_HOW: Final = "How"
_TABLES: Final = ("csv", "jsonl", "parquet")
_TIMEOUT: Final = 3600.0  # seconds of a task
_EXAMPLES: Final = (
    Example("kinst-batch modules --probe fbt:::entry", "every image in a folder: patched, explained, restored"),
    Example("kinst-batch kernels -s calls.d --timeout 20m", "one script over the boots of several kernels"),
    Example(
        "kinst-batch kernel.elf --call hash_bytes --inputs inputs.txt",
        "one function with many inputs, and the instructions that they reach",
    ),
    Example("kinst-batch batch.toml --jobs 8", "several of these, as a file says"),
)


@click.command(name=_NAME, cls=Command, examples=_EXAMPLES, pages=("docs/guide/batch.md",))
@click.argument("source", type=shared.FILE)
@option("--probe", "-p", "probes", group=_WHAT, multiple=True, metavar="SPEC", help="Put SPEC into it; prove it.")
@option("-s", "scripts", group=_WHAT, multiple=True, metavar="FILE", help="Boot it, with the D program in FILE.")
@option("-n", "programs", group=_WHAT, multiple=True, metavar="PROGRAM", help="Boot it, with a D program given here.")
@option("--until", group=_WHAT, metavar="REGEX", help="End a boot after a line of the console that matches.")
@option("--on", group=_WHAT, metavar="COMMAND", help="Boot it under QEMU, started by COMMAND; or qemu: what fits.")
@option("--report", "has_report", group=_WHAT, is_flag=True, help="Make a page about each boot; its row links to it.")
@option(
    "--coverage",
    "has_coverage",
    group=_WHAT,
    is_flag=True,
    help="Boot it, with a D program or without. Write what each boot ran, and all of them added up.",
)
@option("--call", "function", group=_WHAT, metavar="FUNCTION", help="Call a function with each line of --inputs.")
@option("--inputs", group=_WHAT, metavar="FILE", help='Arguments for --call, a line for each: 1, "text".')
@option("--jobs", "-j", group=_HOW, type=click.IntRange(1), metavar="N", help="Tasks at a time; else one a CPU.")
@option("--timeout", group=_HOW, metavar="T", help="Most time of a task: 90s, 20m. Default: 1h.")
@option("--memory-limit", group=_HOW, metavar="SIZE", help="Most memory of a task: 2g. Default: its share of all.")
@option("--dask", group=_HOW, metavar="ADDRESS", help="Let a dask.distributed cluster do the tasks.")
@option("--retry", group=_HOW, is_flag=True, help="Do again what failed, crashed or took too long.")
@option("--dry-run", group=_HOW, is_flag=True, help="Print the tasks, and which are done; do nothing.")
@option("--output", "-o", group=shared.OUTPUT, type=shared.FILE, metavar="DIR", help="The folder; else SOURCE.batch.")
@option(
    "--table",
    group=shared.OUTPUT,
    type=Choice(_TABLES),
    metavar="FORMAT",
    help="Format of the table: csv, jsonl or parquet. Default: parquet with pyarrow (the extra [batch]), else csv.",
    brief="Format of the table: csv, jsonl, parquet.",
)
@option(
    "--format",
    "form",
    group=shared.OUTPUT,
    type=Choice(["text", "json"]),
    metavar="FORMAT",
    default="text",
    help="Format of the summary: text or json.",
)
@shared.csv_safe()
@shared.quiet("No progress on stderr.")
@shared.verbose("Report each task as it finishes.")
@shared.version_option()
def batch(source: Path, **given: Any) -> None:
    """Process many images, those in a folder or named by a TOML file, and collect the results in one table
    and one page.

    Each task has a process of its own: one that crashes, hangs
    or is refused is a row of the table, and the others go on. What is done is written down at once: the same command,
    given again, goes on where it was stopped.
    """
    exit_on_termination()
    with reported(_NAME):
        check_files(source)
        try:
            status = _run_batch(source, given)
        except KeyboardInterrupt:
            click.echo(f"{_NAME}: stopped: what is done is kept; the same command goes on", err=True)
            status = 128 + signal.SIGINT
    sys.exit(status)


def _run_batch(source: Path, given: dict[str, Any]) -> int:
    from kinst.runtime.batch.command import BatchOptions, Destination, by_digest, run_batch, show_tasks
    from kinst.runtime.batch.parquet_file import has_parquet
    from kinst.runtime.batch.table_files import TableFormat

    progress = silent if given["quiet"] or given["verbose"] else bars(unescaped(sys.stderr))
    files, found = _batch(source, given, progress)
    tasks = by_digest(found.tasks)
    folder = given["output"] or Path(f"{source.absolute().name.removesuffix('.toml')}.batch")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is not a folder: name one with -o")
    if given["dry_run"]:
        show_tasks(tasks, folder, given["form"])
        return 0
    read = tuple(NamedFile(str(path), path) for path in [source, *files.places.values()])
    destination = Destination(
        folder,
        TableFormat(given["table"] or ("parquet" if has_parquet() else "csv")),
        read,
        given["csv_safe"],
        files.places,
    )
    if destination.form is TableFormat.PARQUET and not has_parquet():
        raise UsageError("--table parquet needs pyarrow: pip install 'kinst-rewrite[batch]'")
    if given["csv_safe"] and destination.form is not TableFormat.CSV:
        raise UsageError("--csv-safe: is for --table csv")
    options = BatchOptions(given["retry"], given["form"], given["verbose"])
    return run_batch(tasks, destination, _results(files, found, given), progress, options)


def _batch(source: Path, given: dict[str, Any], progress: Progress) -> "tuple[FileTable, Batch]":
    from kinst.runtime.batch.batch_file import BatchReader
    from kinst.runtime.batch.input_files import FileTable
    from kinst.runtime.batch.toml_file import read_batch

    tables = dict(_tables(source, given))
    if source.suffix == ".toml":
        if tables:
            raise UsageError(f"{source}: the file says what to do: leave out {', '.join(tables)}")
        files = FileTable(source.parent, progress)
        return files, BatchReader(files, version("kinst-rewrite"), source.parent).batch(read_batch(source))
    if not tables:
        raise UsageError(f"{source}: nothing to do with it: give --probe, -s, -n, --coverage, or --call with --inputs")
    files = FileTable(Path(), progress)
    found = {kind: [{"images": [str(source)], **table}] for kind, table in tables.items()}
    return files, BatchReader(files, version("kinst-rewrite")).batch(found)


def _tables(source: Path, given: dict[str, Any]) -> Any:
    """The tables of a batch file that mean the same as the options of the command line, by kind."""
    del source
    if given["probes"]:
        yield "rewrite", {"probes": list(given["probes"])}
    if given["scripts"] or given["programs"] or given["has_coverage"]:
        more = {name: given[name] for name in ("until", "on") if given[name] is not None}
        more |= {name: given[f"has_{name}"] for name in ("report", "coverage")}
        yield "run", {"scripts": list(given["scripts"]), "programs": list(given["programs"]), **more}
    elif given["on"] is not None:
        raise UsageError("--on: is for boots: give -s or -n, or write on in the [[run]] of a file")
    elif given["has_report"]:
        raise UsageError("--report: is about boots: give -s or -n, or write report = true in the [[run]] of a file")
    if given["function"] is not None or given["inputs"] is not None:
        if given["function"] is None or given["inputs"] is None:
            raise UsageError("--call FUNCTION and --inputs FILE go together")
        yield "call", {"function": given["function"], "inputs": given["inputs"]}


def _results(files: "FileTable", found: "Batch", given: dict[str, Any]) -> Any:
    """A function that performs the tasks: by processes here, or by a cluster."""
    from kinst.runtime.batch.pool import pool_results
    from kinst.runtime.batch.worker import Limits
    from kinst.runtime.machine.host_memory import total_memory
    from kinst.runtime.tracing.programs.quantities import seconds_of, size_of

    jobs = given["jobs"] or len(os.sched_getaffinity(0))
    timeout = seconds_of("--timeout", given["timeout"]) if given["timeout"] else found.timeout or _TIMEOUT
    memory = size_of("--memory-limit", given["memory_limit"]) if given["memory_limit"] else found.memory
    limits = Limits(timeout, memory or total_memory() // jobs)
    if given["dask"] is not None:
        from kinst.runtime.batch.cluster import cluster_results

        return partial(cluster_results, places=files.places, limits=limits, address=given["dask"])
    return partial(pool_results, places=files.places, limits=limits, jobs=jobs)
