"""A guest that was taken back from its panic."""

from pathlib import Path

from kinst.runtime.clauses.profiles import PanicSign
from kinst.runtime.machine.configuration import End
from kinst.runtime.tracing.guests.panic_watch import PanicWatch
from kinst.targets.image import open_image

_IMAGE = Path(__file__).parents[3] / "samples/kernel-arm64.elf"


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time


class Machine:
    """A machine elsewhere, with a variable at 0."""

    def __init__(self) -> None:
        self.clock, self.variable, self.ends = Clock(), b"\0\0\0\0", list[End]()

    def finish(self, end: End) -> None:
        self.ends.append(end)


def _watch(machine: Machine) -> PanicWatch:
    sign = PanicSign("soft_ticks", 4, 0)
    return PanicWatch(
        machine, lambda _at, _size: machine.variable, open_image(_IMAGE), lambda _at: 0, lambda _: (sign,)
    )


def test_what_was_taken_back_ends_no_run() -> None:
    machine = Machine()
    watch = _watch(machine)
    for time, variable in ((1, b"\0\0\0\0"), (50, b"\1\0\0\0")):
        machine.clock.time, machine.variable = time * 1_000_000, variable
        watch.check()
    machine.clock.time, machine.variable = 2_000_000, b"\0\0\0\0"
    watch.begin_anew()
    for time in (2, 40, 80):
        machine.clock.time = time * 1_000_000
        watch.check()
    assert machine.ends == []
    machine.variable = b"\1\0\0\0"
    for time in (100, 130):
        machine.clock.time = time * 1_000_000
        watch.check()
    assert machine.ends == [End.GUEST_PANIC]
