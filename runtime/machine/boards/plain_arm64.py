"""An arm64 board of a board file: its devices, and CPU 0 started at the level that the file says.

Above EL1 and EL2 there is firmware of the machine's own, which answers PSCI calls by smc (at EL1 by hvc as well).
"""

from typing import Final

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards.arm64_cpu import reset
from kinst.runtime.machine.boards.device_library import attach_device, no_line
from kinst.runtime.machine.boards.event_loops import EventLoopWatch
from kinst.runtime.machine.boards.plain_tree import place_tree, registers_at_start
from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.arm_timer import INTERRUPTS, GenericTimer
from kinst.runtime.machine.devices.arm.gic_virtual import HypervisorInterface, VirtualCpuInterface
from kinst.runtime.machine.devices.arm.gicv2 import CpuInterface, Distributor, Gic
from kinst.runtime.machine.devices.arm.gicv2m import Gicv2m
from kinst.runtime.machine.devices.arm.psci import Psci
from kinst.runtime.machine.exceptions.arm64 import LINE_FIQ, LINE_IRQ, Arm64Exceptions
from kinst.runtime.machine.exceptions.arm64_debug import DebugRegisters
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine

_PRIVATE: Final = 32
_INTERRUPTS: Final = _PRIVATE + 480
_MESSAGES: Final = 64


class PlainArm64:
    """The board; implements `kinst.runtime.machine.board.Board`."""

    def __init__(self, machine: Machine) -> None:
        """Nothing is attached yet."""
        self._machine = machine
        assert machine.facts.start is not None, "a plain board says how it starts"
        self._level = int(machine.facts.start.level[2:])
        self._gic = gic = _gic(machine)
        inputs = [
            {kind: no_line if gic is None else gic.ppi(cpu.number, number) for kind, number in INTERRUPTS.items()}
            for cpu in machine.cpus
        ]
        self._timer = GenericTimer(machine.clock, inputs, machine.facts.timebase)
        firmware, debug = Psci(machine, self._start_cpu), DebugRegisters(machine.space)
        midr = machine.facts.midr
        self.exceptions = Arm64Exceptions(
            firmware, self._timer, debug, has_el2=self._level >= 2, shows_el3=True, midr=midr
        )

    def start(self, image: Loaded) -> None:
        """Attach the devices, write the device tree, and start CPU 0."""
        machine, facts = self._machine, self._machine.facts
        assert facts.start is not None, "a plain board says how it starts"
        self.exceptions.start()
        machine.attach_timed(self._timer)
        for name in facts.devices:
            self._attach(name)
        machine.attach_timed(EventLoopWatch(machine, image, has_el2=self.exceptions.has_el2))
        tree = place_tree(machine, image)
        entry = image.physical_entry if facts.start.entry is None else facts.start.entry
        reset(machine.cpus[0], entry, 0, self._level, facts.midr)
        for name, value in registers_at_start(machine, tree).items():
            machine.cpus[0].registers.set(name, value)

    def _attach(self, name: str) -> None:
        machine, gic = self._machine, self._gic
        facts = machine.facts.devices[name]
        if gic is None:
            attach_device(machine, name, facts, lambda _number: no_line)
            return
        match facts.model:
            case "gicv2":
                machine.attach(Distributor(gic), facts.address)
            case "gicv2-cpu":
                machine.attach(CpuInterface(gic), facts.address)
            case "gicv2m":
                first = facts.interrupt or 0
                lines = [gic.spi(first + number) for number in range(_MESSAGES)]
                machine.attach(Gicv2m(_PRIVATE + first, lines), facts.address)
            case "gic-virtual":
                interface = HypervisorInterface(len(machine.cpus), lambda: machine.current.number)
                machine.attach(interface, facts.address)
            case "gic-virtual-cpu":
                machine.attach(VirtualCpuInterface(), facts.address)
            case _:
                attach_device(machine, name, facts, self._line)

    def _line(self, number: int) -> Line:
        return no_line if self._gic is None or number >= _INTERRUPTS - _PRIVATE else self._gic.spi(number)

    def _start_cpu(self, cpu: Cpu, entry: int, argument: int) -> None:
        midr = self._machine.facts.midr
        self.exceptions.reset_before_running(cpu, lambda loaded: reset(loaded, entry, argument, self._level, midr))


def _gic(machine: Machine) -> Gic | None:
    """The interrupt controller; None: the board has none that is known here."""
    if all(one.model != "gicv2" for one in machine.facts.devices.values()):
        return None
    outputs = [(cpu.line(LINE_IRQ), cpu.line(LINE_FIQ)) for cpu in machine.cpus]
    return Gic(outputs, _INTERRUPTS, lambda: machine.current.number)


BOARD: BoardFactory = PlainArm64
