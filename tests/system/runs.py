"""A case and probe descriptions -> what a run under `--clock icount` did: console, time, hits by address; the machine
as it was left."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kinst.runtime import Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.machine.configuration import End
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.trace import Trace
from kinst.runtime.tracing.given import ClockName, MethodName
from kinst.runtime.tracing.guests.guest import Guest
from kinst.runtime.tracing.hits import Hit
from kinst.targets.manifest.packed import Manifest
from tests.system.cases import Case

LIMIT = 60.0  # seconds of the machine's time; every case ends long before
Prepare = Callable[[Guest], None]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind."""

    trace: Trace
    end: End
    hits: Counter[tuple[int, int]]  # by address where the probe fired and its identifier

    @property
    def guest(self) -> Guest:
        """The machine and the image in it."""
        return self.trace.guest

    @property
    def console(self) -> bytes:
        """What the guest printed."""
        return self.trace.console

    @property
    def time(self) -> int:
        """Of the machine in nanoseconds; an instruction takes 10."""
        return self.guest.system.clock.now()

    @property
    def sites(self) -> SiteTable:
        """Of a run with probes."""
        assert self.guest.code is not None
        return self.guest.code.sites

    @property
    def manifest(self) -> Manifest:
        """Of a run with probes."""
        return self.sites.manifest


def run(
    case: Case,
    descriptions: Sequence[str] = (),
    *,
    cpus: int = 1,
    image: Path | None = None,
    method: MethodName | None = None,
    clock: ClockName = "icount",
    options: Mapping[str, bool | int | str] | None = None,
    prepare: Prepare = lambda _guest: None,
    action: Callable[[Hit], None] | None = None,
) -> Run:
    """Run a case to its end, patched in memory with what `descriptions` name; `image` is a copy to run instead of the
    case's own, `method` how instructions are carried out, `prepare` may look into the machine before it starts, and
    `action` is called at each hit instead of counting it."""
    hits: Counter[tuple[int, int]] = Counter()

    def count(hit: Hit) -> None:
        hits[hit.address, hit.identifier] += 1

    with open_image(case.path if image is None else image) as file:
        trace = file.trace(
            actions=dict.fromkeys(descriptions, action or count),
            machine=Machine(board=case.machine, cpus=cpus, clock=clock),
            options=Options(method=method, d=options or {}),
        )
    prepare(trace.guest)
    return Run(trace, let_go(trace, case.until, case.asks), hits)


def let_go(trace: Trace, until: str | None, asks: bytes | None, limit: float = LIMIT) -> End:
    """To the end. A key is pressed when the guest asks for one."""
    if asks is not None:
        trace.type_lines(b" ", prompt=re.escape(asks.decode()))
    return trace.run(seconds=limit, until=until)
