"""A run that is over -> the facts at the top of its report: what was run, on what, for how long, and how it ended."""

import platform
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from kinst.runtime.consumer.pictures.heat_map import duration
from kinst.runtime.dlang.syntax.language import VERSION
from kinst.runtime.tracing.tracing import Tracing


class Watch:
    """The host's time since it was made."""

    def __init__(self) -> None:
        self._began, self._elapsed, self._cpu = time.time(), time.monotonic(), time.process_time()

    @property
    def began(self) -> str:
        """The date and time of the start."""
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(self._began))

    def __str__(self) -> str:
        elapsed, cpu = time.monotonic() - self._elapsed, time.process_time() - self._cpu
        return f"{elapsed:.3g} s, {cpu:.3g} s of the CPU"


def facts(
    tracing: Tracing, command: Sequence[str], watch: Watch, start: int, end: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Labels and texts. `start` is when the run began (ns), and `end` what `Ending.value` gives."""
    request = tracing.request
    if command:  # none: from Python
        yield "command", shlex.join(command)
    if request.image is not None:
        yield "image", f"{request.image}, {request.image.stat().st_size:,} bytes"
    for program in request.programs:
        yield "program", program.text.strip()
    yield from _machine(tracing)
    yield "machine's time", duration(tracing.tracer.now() - start)
    yield "host's time", str(watch)
    yield "when", watch.began
    yield "versions", f"kinst-rewrite {version('kinst-rewrite')}, D {VERSION}, Python {platform.python_version()}"
    yield from _ending(end)


def _machine(tracing: Tracing) -> Iterator[tuple[str, str]]:
    guest, configuration, call = tracing.guest, tracing.request.configuration, tracing.request.call
    if tracing.request.on is not None:
        yield "machine", f"QEMU: {tracing.request.on}"
    if guest is None:
        return
    machine, cpus = guest.prepared.facts, f"{configuration.cpus} CPU{'' if configuration.cpus == 1 else 's'}"
    yield "machine", f"{machine.name} ({machine.arch}), {cpus}, clock {configuration.clock.value}"
    if call is not None:
        yield "call", tracing.traced.answer or call


def _ending(end: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How the run ended, in addition to the reason."""
    if "message" in end:
        yield "error", str(end["message"])
    for cpu in end.get("cpus", ()):
        where = " ".join(str(cpu[name]) for name in ("address", "symbol", "instruction") if name in cpu)
        yield f"CPU {cpu['cpu']}", f"{cpu['state']} {where}".strip()
    for text in (*end.get("lacking", ()), *([end["passed-over"]] if "passed-over" in end else [])):
        yield "note", str(text)
