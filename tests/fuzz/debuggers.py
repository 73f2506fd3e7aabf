"""Debuggers that have gone mad: any bytes at the door, and packets of the protocol with any numbers, in any order.

The machine is real, has an image, and goes on for a few instructions with whatever it was told. Rules: nothing is
raised, each reply can be read back, and registers and memory are as before for who only asked for them.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.debugger.backwards import Backwards
from kinst.runtime.debugger.commands import Commands, Debugged
from kinst.runtime.debugger.history import History
from kinst.runtime.debugger.memory import DebuggedMemory
from kinst.runtime.debugger.monitor import Monitor, MonitorCommand
from kinst.runtime.debugger.packets import Decoder, Packet, Signal, framed
from kinst.runtime.debugger.points import Points
from kinst.runtime.debugger.registers import Registers
from kinst.runtime.debugger.resuming import Resumption
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.snapshots.snapshot import Snapshots
from kinst.runtime.machine.system import System
from kinst.targets.errors import KinstError
from kinst.targets.image import open_image
from kinst.targets.machines.registry import default_machine, machine_facts
from tests.fuzz.kind import Finding, Kind
from tests.runtime.debugger.samples import SAMPLES

_ASKING: Final = "gpm?q"  # the first letters of packets that only ask
_RUN: Final = 2_000  # ns of the machine's time


class _Snapshots(Snapshots):
    """Those of a machine that can go back."""

    def why_not(self) -> str | None:
        """Nothing is against it."""
        return None

    def pause(self) -> None:
        """Nobody traces it."""

    def go_on(self, *, is_another: bool) -> None:
        """Likewise."""


class _Guest:
    """A machine with a kernel in it, which a debugger has."""

    def __init__(self, machine: str) -> None:
        image, facts = open_image(SAMPLES[machine]), machine_facts(default_machine(machine))
        configuration = Configuration(cpus=2, clock=ClockKind.ICOUNT, counts_instructions=True)
        self.system = System(facts, board_of(facts.board), configuration)
        loaded = load_image(image, facts, self.system.memory)
        self.system.board.start(loaded)
        self.system.space.start()
        self.memory = DebuggedMemory(self.system, loaded)
        self.points = Points(self.system, self.memory, lambda _cause, _address: True, lambda: None)
        registers = Registers(self.system)
        self.debugged = Debugged(
            self.system,
            registers,
            self.memory,
            self.points,
            Monitor({"say": MonitorCommand(str, "what it is given")}),
            Backwards(self.system, History(self.system, _Snapshots(self.system)), registers, self.points),
        )

    def asked(self, commands: Commands, data: bytes) -> None:
        """Handle a packet."""
        cpu = self.system.current  # `Hg` has been told of another, which the next packet looks at
        before = self.debugged.registers.general() if data[:1].decode("latin-1") in _ASKING else None
        outcome = commands.handle(data)
        if isinstance(outcome, bytes):
            found = list(Decoder().feed(framed(outcome)))
            if found != [Packet(outcome, is_intact=True)]:
                raise Finding(f"the reply {outcome!r} to {data!r} reads as {found}")
        if before is not None and self.system.current is cpu and self.debugged.registers.general() != before:
            raise Finding(f"{data!r} has changed registers")
        if isinstance(outcome, Resumption):
            self.points.prepare(is_step=outcome.step is not None)
            with suppress(KinstError):  # the guest may be told to jump anywhere
                self.system.run(timeout=_RUN)


@cache
def _guest(machine: str) -> _Guest:
    return _Guest(machine)


def _run(given: tuple[str, Sequence[bytes], bytes], _folder: Path) -> None:
    machine, packets, noise = given
    guest = _guest(machine)
    commands, decoder = Commands(guest.debugged, lambda: None), Decoder()
    for data in packets:
        for event in decoder.feed(framed(data) + noise):
            if isinstance(event, Packet) and event.is_intact:
                guest.asked(commands, event.data)
            elif not isinstance(event, Packet | Signal):
                raise Finding(f"{event!r} is no event")
    guest.points.clear()
    guest.memory.be_physical(is_wanted=False)


_NUMBERS: Final = st.one_of(
    st.integers(0, 64),
    st.integers(0, (1 << 64) + 2),
    st.sampled_from(
        [0x8000_0000, 0x4008_0000, 0xFFFF_FFFF_8010_0000, 0x10_0000, 0x900_0000, 0xFFF, 0xFFFF_FFFF_FFFF_FFFF]
    ),
).map(lambda number: f"{number:x}")
_HEX: Final = st.binary(max_size=40).map(bytes.hex)
_KNOWN: Final = st.sampled_from(
    [
        "?",
        "g",
        "c",
        "s",
        "D",
        "k",
        "vCont?",
        "vCont;c",
        "vCont;s:1;c",
        "vCont;s:2",
        "qC",
        "qfThreadInfo",
        "qsThreadInfo",
    ]
)
_PACKETS: Final = st.one_of(
    _KNOWN,
    st.builds(
        "{}{}".format,
        st.sampled_from(["p", "c", "s", "Hg", "Hc", "T", "qThreadExtraInfo,", "Qqemu.PhyMemMode:"]),
        _NUMBERS,
    ),
    st.builds("m{},{}".format, _NUMBERS, _NUMBERS),
    st.builds("M{},{}:{}".format, _NUMBERS, _NUMBERS, _HEX),
    st.builds("P{}={}".format, _NUMBERS, _HEX),
    st.builds("G{}".format, _HEX),
    st.builds("{}{},{},{}".format, st.sampled_from("Zz"), st.sampled_from("01234567"), _NUMBERS, _NUMBERS),
    st.builds("qXfer:features:read:target.xml:{},{}".format, _NUMBERS, _NUMBERS),
    st.builds("qRcmd,{}".format, _HEX),
    st.builds("vCont;{}:{};{}".format, st.sampled_from("csCSrt"), _NUMBERS, st.sampled_from("cs")),
    st.builds("qSupported:{}".format, st.text(max_size=20)),
    st.text(max_size=30),
).map(lambda text: text.encode("latin-1", "replace"))

DEBUGGERS: Final = Kind(
    "gdb",
    st.tuples(
        st.sampled_from(sorted(SAMPLES)),
        st.lists(st.one_of(_PACKETS, st.binary(max_size=60)), min_size=1, max_size=12),
        st.binary(max_size=6),
    ),
    _run,
)
