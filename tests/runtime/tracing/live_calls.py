"""Calls of functions in a machine that has run -> what each comes to, and what memory is like behind it."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kinst.runtime.api import ImageFile
from kinst.runtime.machine.calling.arguments import Argument, Buffer, Structure
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import Call, made
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.snapshots.ram import guest_regions
from kinst.runtime.tracing.given import Machine
from kinst.runtime.tracing.guests.calls import Calls

TIMEOUT = 300_000  # ns of virtual time: 30,000 instructions
MEMORY = 16 << 20  # bytes of RAM


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: without the host's time; and a digest of memory at its end, if it has not faulted."""

    called: Called
    console: bytes
    memory: str


def digest(calls: Calls) -> str:
    """What is in the machine's RAM."""
    found = hashlib.blake2b()
    for region in guest_regions(calls._system.memory):
        if region.base < MEMORY << 8:  # without what calls use of their own
            found.update(region.view)
    return found.hexdigest()


def outcome_of(calls: Calls, call: Call) -> Outcome:
    """Make a call."""
    console, memory = bytearray(), [""]

    def look() -> None:
        memory[0] = digest(calls)

    called = calls.call(call, TIMEOUT, MachineHooks(console.extend, look))
    return Outcome(called, bytes(console), memory[0])


@contextmanager
def calls_in(image: ImageFile, machine: Machine) -> Iterator[Calls]:
    """What calls functions in a machine of its own, without probes."""
    yield image.sweep("memcpy", coverage="", machine=machine).calls


def snapshot_of(image: ImageFile, seconds: float, path: Path) -> Machine:
    """A machine that goes on where a run was after some time."""
    with image.trace(machine=Machine(clock="icount", memory=MEMORY)) as trace:
        trace.run(seconds=seconds)
        trace.snapshot(path)
    return Machine(clock="icount", memory=MEMORY, start=path)


def drawn(image: ImageFile, draw: random.Random, count: int) -> Sequence[Call]:
    """Functions of the image, whatever they do, with arguments that they may or may not expect."""
    names = sorted({probe.function for probe in image.probes("fbt:::entry")})
    data = [one.address for one in image.opened.image.segments if one.size]
    return [
        made(draw.choice(names), tuple(_argument(draw, data) for _ in range(draw.randrange(9)))) for _ in range(count)
    ]


def _argument(draw: random.Random, data: Sequence[int]) -> Argument:
    match draw.randrange(6):
        case 0:
            return draw.randrange(-8, 200)
        case 1:
            return draw.choice(data) + draw.randrange(0, 512, 8)
        case 2:
            return draw.randbytes(draw.randrange(20))
        case 3:
            return Buffer(draw.randbytes(draw.randrange(40)), 1 << draw.randrange(4))
        case 4:
            return Structure(((4, draw.randrange(9)), (8, b"name"), (1, draw.randrange(256)), (8, Buffer(b"\0" * 64))))
        case _:
            return draw.randrange(1 << 64)
