"""Every instruction of inlined copies while an image runs: what ours and gdb say of the copies' parameters there."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from kinst.rewriter.naming.inline_probes import InlineSite
from kinst.rewriter.rewriting import Opened, Source, open_source
from kinst.runtime import Machine, Options, api
from kinst.runtime.tracing.guests.guest import Guest as Ran
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.location_operations import OPTIMISED_OUT
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.debuginfo.inlined import InlinedCopy, InlinedParameter, Location
from tests.system.gdb_state import LAYOUTS, OUT, STRUCT, Answer, Gdb, State
from tests.system.runs import let_go

ENTRY_VALUES: Final = (0xA3, 0xF3, 0xFA)  # DW_OP_entry_value, GNU_entry_value, GNU_parameter_ref
_FIRST: Final = {"amd64": (5, 4, 1, 2, 8, 9), "arm64": range(8), "riscv64": range(10, 18)}  # DWARF's numbers
_MASK: Final = (1 << 64) - 1
Told = int | str  # a value, or what else gdb says


@dataclass(frozen=True)
class Guest:
    """An image and how it is run."""

    path: Path
    machine: str | None = None
    until: str | None = None
    asks: bytes | None = None
    call: str | None = None

    @cached_property
    def opened(self) -> Opened:
        return open_source(Source(self.path))


@dataclass
class Compared:
    """Outcomes: how many values both have, how many neither has, and where they are not one."""

    both: Counter[str] = field(default_factory=Counter)  # by kind: entry, plain
    neither: Counter[str] = field(default_factory=Counter)
    differ: list[str] = field(default_factory=list)
    only_ours: list[str] = field(default_factory=list)
    values: list[tuple[str, str, Told]] = field(default_factory=list)  # function, parameter, ours


def compare(guest: Guest, functions: Collection[str], most: int) -> Compared:
    """At each instruction of the functions' copies, the first `most` times that it is executed."""
    opened, found = guest.opened, Compared()
    inlines = opened.inlines(with_parameters=True, types=image_types(opened.image))
    copies = [(one.name, copy) for name in functions for one in inlines.find(name) for copy in one.copies]
    holders = sorted({copy.caller for _, copy in copies if copy.ranges and copy.caller})
    with api.open_image(guest.path) as image:
        trace = image.trace(
            actions={f"kinst::{holder}:": lambda _hit: None for holder in holders},
            call=guest.call,
            machine=Machine(board=guest.machine, clock="icount"),
            options=Options(d={"zdefs": True}),
        )
    ran = trace.guest
    with Gdb(guest.path, (Fault,)) as gdb:
        look = _Look(ran, gdb, found, most)
        bias = ran.loaded.bias
        inside = {
            address: (name, copy)
            for name, copy in reversed(copies)
            for low, high in copy.ranges
            for address in range(low, high)
        }

        def run(firing: Firing) -> None:
            copy = inside.get(firing.site - bias)
            if copy is not None:
                look.at(firing, firing.site - bias, *copy)

        providers = ran.surroundings.providers
        providers.enable(providers.enabled, run)
        ran.surroundings.arm()
        let_go(trace, guest.until, guest.asks)
    return found


class _Look:
    """At one firing after another."""

    def __init__(self, ran: Ran, gdb: Gdb, found: Compared, most: int) -> None:
        arch = ran.system.arch
        self._numbers = _FIRST[arch.name]
        layout = LAYOUTS[arch.name]
        self._order = [arch.registers.index(name) for name in layout] if layout else list(range(33))
        assert ran.inlines is not None
        self._arguments = ran.inlines._arguments
        self._read = ran.surroundings.memory.read
        self._caller = ran.surroundings.stacks.caller
        self._gdb, self._found, self._most = gdb, found, most
        self._times: Counter[tuple[int, int]] = Counter()

    def at(self, firing: Firing, address: int, function: str, copy: InlinedCopy) -> None:
        """One instruction of a copy is next. What was passed depends on who called."""
        key = address, self._caller(firing)
        self._times[key] += 1
        if self._times[key] > self._most:
            return
        regs = firing.regs
        answer = self._gdb.arguments(State([regs[index] for index in self._order], self._read), function)
        argument = self._arguments.at(InlineSite(0, address, function, (copy,)))
        for index, parameter in enumerate(copy.parameters):
            try:
                ours: Told = argument(firing, index) & _MASK
            except Fault as fault:
                assert fault.text.startswith(OPTIMISED_OUT), fault.text
                ours = OUT
            location = next((one for one in parameter.locations if one.low <= address < one.high), None)
            self._compare(f"{function}.{parameter.name} at {address:#x}", ours, parameter, location, answer)
            self._found.values.append((function, parameter.name, ours))

    def _compare(
        self, what: str, ours: Told, parameter: InlinedParameter, location: Location | None, answer: Answer
    ) -> None:
        theirs = self._theirs(parameter, location, answer)
        kind = "entry" if location is not None and set(ENTRY_VALUES) & set(location.expression) else "plain"
        if theirs in (None, STRUCT):
            return
        if ours == theirs:
            (self._found.neither if ours == OUT else self._found.both)[kind] += 1
        elif theirs == OUT:
            self._found.only_ours.append(what)
        else:
            self._found.differ.append(f"{what}: {ours}, gdb says {theirs}: {location}")

    def _theirs(self, parameter: InlinedParameter, location: Location | None, answer: Answer) -> Told | None:
        """None: gdb cannot be asked. A register's value at the entry is that of the function's parameter there."""
        expression = b"" if location is None else location.expression
        if len(expression) == 4 and expression[0] in ENTRY_VALUES and expression[2] - 0x50 in self._numbers:
            index = list(self._numbers).index(expression[2] - 0x50)
            entered = list(answer.entered.values())
            return entered[index] if index < len(entered) and STRUCT not in entered[: index + 1] else None
        told = None if answer.copy is None else answer.copy.get(parameter.name)
        return None if set(ENTRY_VALUES) & set(expression) else told
