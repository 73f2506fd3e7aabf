"""Command line -> kinst-run. The only file of this package that knows click."""

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

import click

from kinst.rewriter.command import reported
from kinst.runtime.consumer.text import TextConsumer
from kinst.runtime.session import Session, Wanted
from kinst.runtime.system import ClockKind, Configuration
from kinst.targets.errors import UsageError

_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(name="kinst-run", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("image", type=click.Path(path_type=Path))
@click.option(
    "-n",
    "descriptions",
    metavar="DESC",
    multiple=True,
    help="Enable probes; an image without them is patched in memory.",
)
@click.option("--machine", metavar="NAME", help="Machine to run on; default: the one of the image's architecture.")
@click.option(
    "--call", metavar="'f(1, \"text\")'", help="Call one function instead of booting, and print what it returns."
)
@click.option("--cpus", type=int, default=1, show_default=True, help="Number of CPUs.")
@click.option("--memory", metavar="SIZE", help="RAM, e.g. 256m; default: what the machine has.")
@click.option(
    "--clock",
    type=click.Choice([kind.value for kind in ClockKind]),
    default="host",
    show_default=True,
    help="Time of the machine: the host's, or the number of executed instructions.",
)
@click.option("--append", metavar="TEXT", help="Command line for the kernel; default: the machine's own.")
@click.option("--timeout", metavar="T", help="End after so much of the machine's time, e.g. 10, 500ms, 2m.")
@click.option("--until", metavar="REGEX", help="End after a line of the console that matches.")
@click.option("--console", type=_FILE, metavar="FILE", help="Write the guest's console there instead of to stdout.")
@click.option(
    "-o", "output", type=_FILE, metavar="FILE", help="Append the output to FILE instead of writing it to stdout."
)
@click.option("-q", "quiet", is_flag=True, help="No header, no descriptions, no default lines.")
def run(
    image: Path,
    descriptions: tuple[str, ...],
    machine: str | None,
    call: str | None,
    cpus: int,
    memory: str | None,
    clock: str,
    append: str | None,
    timeout: str | None,
    until: str | None,
    console: Path | None,
    output: Path | None,
    quiet: bool,  # noqa: FBT001 - click passes options by name
) -> None:
    """Run a kernel or firmware image under emulation; print a line for every probe that fires.

    A patched image fires the probes it was patched with, or those that -n names.
    """
    with reported("kinst-run"):
        wanted = Wanted(
            image=image,
            machine=machine,
            configuration=Configuration(cpus, _size(memory), ClockKind(clock), append),
            descriptions=tuple(_description(text) for text in descriptions),
            timeout=_seconds(timeout),
            until=until,
            call=call,
        )
        _run(wanted, console, output, quiet=quiet)


def _run(wanted: Wanted, console: Path | None, output: Path | None, *, quiet: bool) -> None:
    session = Session(wanted)
    with ExitStack() as files:
        out: BinaryIO = sys.stdout.buffer if output is None else files.enter_context(output.open("ab"))
        to: BinaryIO | None = None if console is None else files.enter_context(console.open("wb"))
        if output is not None and to is None:
            to = sys.stdout.buffer  # -o takes the output, not the guest's console
        consumer = TextConsumer(out, to, session.providers.probe)
        for matched in session.enable(consumer.ignored if quiet else consumer.fired):
            if not quiet:
                plural = "" if matched.count == 1 else "s"
                click.echo(
                    f"kinst-run: description '{matched.description}' matched {matched.count} probe{plural}", err=True
                )
        session.run(consumer, with_header=not quiet)
        if session.result is not None:
            out.write(f"{wanted.call} = {session.result:#x}\n".encode())
    if session.system.exit_code:
        sys.exit(session.system.exit_code)


def _description(text: str) -> str:
    """A probe description; D programs are not here yet."""
    if re.search(r"[{/;]", text):
        raise UsageError(
            f"-n {text}: clauses and predicates of D programs are not supported yet, only probe descriptions"
        )
    return text.strip()


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+|0[xX][0-9a-fA-F]+)([kmgKMG]?)(?:i?[bB])?", text)
    if found is None:
        raise UsageError(f"--memory {text}: a number with k, m or g behind it")
    return int(found[1], 0) * _SIZES[found[2].lower()]


_UNITS: Final = {
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "ms": 1e-3,
    "msec": 1e-3,
    "us": 1e-6,
    "usec": 1e-6,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d*)?)([a-z]*)", text)
    if found is None or found[2] not in _UNITS:
        raise UsageError(f"--timeout {text}: a number of seconds, or with a unit: us, ms, s, m, h")
    return float(found[1]) * _UNITS[found[2]]
