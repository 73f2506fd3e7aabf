"""A case and probe descriptions -> what a run under `--clock icount` did: console, time, hits by address; the machine
as it was left."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.patched.sites import SiteTable
from kinst.runtime.tracing.session import Session, Wanted
from kinst.runtime.trap.trap import Firing
from kinst.targets.manifest import Manifest, Method
from tests.system.cases import Case

LIMIT = 60.0  # seconds of the machine's time; every case ends long before
Prepare = Callable[[Session], None]


@dataclass(slots=True)
class Recorder:
    """A consumer that keeps the console, counts firings by (address, identifier of the probe) and presses a key when
    `question` is printed."""

    question: bytes | None
    typed: bytearray
    printed: bytearray = field(default_factory=bytearray)
    hits: Counter[tuple[int, int]] = field(default_factory=Counter)

    def begin(self, *, with_header: bool) -> None:
        """Nothing to write."""

    def fired(self, firing: Firing) -> None:
        self.hits[firing.site, firing.enabling.probe] += 1

    def console(self, data: bytes) -> None:
        self.printed += data
        if self.question is not None and self.question in self.printed:
            self.question = None
            self.typed += b" "

    def flush(self) -> None:
        """Nothing is kept back."""

    def end(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind."""

    session: Session
    end: End
    console: bytes
    time: int  # of the machine in nanoseconds; an instruction takes 10
    hits: Counter[tuple[int, int]]  # by address where the probe fired and its identifier

    @property
    def sites(self) -> SiteTable:
        """Of a run with probes."""
        assert self.session._sites is not None
        return self.session._sites

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
    method: Method | None = None,
    prepare: Prepare = lambda _session: None,
) -> Run:
    """Run a case to its end, patched in memory with what `descriptions` name; `image` is a copy to run instead of the
    case's own, `method` how instructions are carried out, `prepare` may look into the machine before it starts."""
    wanted = Wanted(
        image=case.path if image is None else image,
        machine=case.machine,
        configuration=Configuration(cpus=cpus, clock=ClockKind.ICOUNT),
        descriptions=tuple(descriptions),
        timeout=LIMIT,
        until=case.until,
        method=method,
    )
    session = Session(wanted)
    recorder = Recorder(case.asks, session.system.typed)
    list(session.enable(recorder.fired))
    prepare(session)
    end = session.run(recorder)
    return Run(session, end, bytes(recorder.printed), session.system.clock.now(), recorder.hits)
