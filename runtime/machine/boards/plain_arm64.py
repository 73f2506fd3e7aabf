"""An arm64 board of a board file: its devices, and CPU 0 started at the level that the file says.

Above EL1 and EL2 there is firmware of the machine's own, which answers PSCI calls by smc (at EL1 by hvc as well).
"""

from typing import Final

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards.arm64.controller import (
    PRIVATE,
    attach_part,
    controller_of,
    registers_of,
    timer_inputs,
)
from kinst.runtime.machine.boards.arm64.cpu import reset
from kinst.runtime.machine.boards.arm64.event_loops import EventLoopWatch
from kinst.runtime.machine.boards.arm64.handed_over import SIZE, handed_over
from kinst.runtime.machine.boards.device_library import attach_device, no_line
from kinst.runtime.machine.boards.memory_cards import Sockets
from kinst.runtime.machine.boards.plain_tree import free_place, place_tree, registers_at_start, tree_size
from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.arm_timer import GenericTimer
from kinst.runtime.machine.devices.arm.psci import Psci
from kinst.runtime.machine.exceptions.arm64 import PFR0_EL3, PFR0_GIC, Arm64Exceptions
from kinst.runtime.machine.exceptions.arm64_debug import DebugRegisters
from kinst.runtime.machine.exceptions.arm64_lacking import ImplementationDefined
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine

_INTERRUPTS: Final = PRIVATE + 480
_EL3: Final = 3


class PlainArm64:
    """The board; implements `kinst.runtime.machine.board.Board`."""

    def __init__(self, machine: Machine) -> None:
        """Nothing is attached yet."""
        self._machine = machine
        assert machine.facts.start is not None, "a plain board says how it starts"
        self._level = int(machine.facts.start.level[2:])
        self._gic = gic = controller_of(machine, _INTERRUPTS, has_el3=self._level == _EL3)
        inputs = [timer_inputs(gic, cpu.number, no_line) for cpu in machine.cpus]
        registers = registers_of(gic)
        self._timer = GenericTimer(machine.clock, inputs, machine.facts.timebase)
        firmware, debug = Psci(machine, self._start_cpu), DebugRegisters(machine.space)
        self.exceptions = Arm64Exceptions(
            firmware,
            self._timer,
            debug,
            highest=self._level,
            shown=PFR0_EL3 | (PFR0_GIC if registers else 0),
            banks=(*registers, ImplementationDefined(machine.assumed)),
            midr=machine.facts.midr,
        )

    def start(self, image: Loaded) -> None:
        """Attach the devices, write the device tree, and start CPU 0."""
        machine, facts = self._machine, self._machine.facts
        assert facts.start is not None, "a plain board says how it starts"
        self.exceptions.start(self._reset)
        machine.attach_timed(self._timer)
        sockets = Sockets(machine)
        for name in facts.devices:
            self._attach(name, sockets)
        machine.attach_timed(EventLoopWatch(machine, image, has_el2=self.exceptions.has_el2))
        tree = place_tree(machine, image)
        entry = image.physical_entry if facts.start.entry is None else facts.start.entry
        reset(machine.cpus[0], entry, 0, self._level, facts.midr)
        for name, value in registers_at_start(machine, {"fdt": tree, **self._parameters(image, tree)}).items():
            machine.cpus[0].registers.set(name, value)

    def _parameters(self, image: Loaded, tree: int) -> dict[str, int]:
        """Write what firmware at EL3 is told of the next stage. Returns its place, if it is told."""
        start = self._machine.facts.start
        if start is None or start.next is None or "bl-params" not in start.registers.values():
            return {}
        given = self._machine.device_tree
        address = free_place(self._machine, image, SIZE, [range(tree, tree + tree_size(given))] if tree else ())
        self._machine.files.refuse(range(address, address + SIZE), "what BL31 is told")
        self._machine.memory.write(address, handed_over(self._machine, start.next, address, tree))
        return {"bl-params": address}

    def _attach(self, name: str, sockets: Sockets) -> None:
        facts = self._machine.facts.devices[name]
        if not attach_part(self._machine, self._gic, facts):
            attach_device(self._machine, name, facts, self._line, sockets)

    def _line(self, number: int) -> Line:
        return no_line if self._gic is None or number >= _INTERRUPTS - PRIVATE else self._gic.spi(number)

    def _start_cpu(self, cpu: Cpu, entry: int, argument: int) -> None:
        self.exceptions.reset_before_running(cpu, entry, argument)

    def _reset(self, cpu: Cpu, entry: int, argument: int) -> None:
        reset(cpu, entry, argument, self._level, self._machine.facts.midr)


BOARD: BoardFactory = PlainArm64
