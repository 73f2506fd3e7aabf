"""The interrupt controller of an arm64 board, by the kinds of its devices: a GICv2 or a GICv3."""

from collections.abc import Mapping
from typing import Final, Protocol

from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.arm.arm_timer import INTERRUPTS, Timer
from kinst.runtime.machine.devices.arm.gic_virtual import HypervisorInterface, VirtualCpuInterface
from kinst.runtime.machine.devices.arm.gicv2 import CpuInterface, Distributor, Gic
from kinst.runtime.machine.devices.arm.gicv2m import Gicv2m
from kinst.runtime.machine.devices.arm.gicv3 import Gicv3
from kinst.runtime.machine.devices.arm.gicv3_registers import CpuRegisters
from kinst.runtime.machine.devices.arm.gicv3_windows import Distributor as Distributor3
from kinst.runtime.machine.devices.arm.gicv3_windows import Redistributors
from kinst.runtime.machine.exceptions.arm64_lacking import RegisterBank
from kinst.runtime.machine.exceptions.arm64_routing import (
    LINE_FIQ,
    LINE_GROUP1,
    LINE_GROUP1_SECURE,
    LINE_IRQ,
    is_secure,
)
from kinst.runtime.machine.machine import Machine
from kinst.targets.machines.machine import DeviceFacts

PRIVATE: Final = 32
_MESSAGES: Final = 64  # shared interrupts for messages of PCI devices


class Controller(Protocol):
    """What a board needs of its interrupt controller."""

    def spi(self, number: int) -> Line:
        """The input of shared interrupt `number`, counted from 0."""
        ...

    def ppi(self, cpu: int, interrupt: int) -> Line:
        """The input of a CPU's private interrupt (16 to 31)."""
        ...


def controller_of(machine: Machine, interrupts: int, *, has_el3: bool) -> Controller | None:
    """The controller with so many interrupts; None: the board has none that is known here. `has_el3`: guests have a
    secure state."""
    models = {one.model for one in machine.facts.devices.values()}
    if "gicv3" in models:
        return _gicv3(machine, interrupts, has_el3=has_el3)
    if "gicv2" in models:
        outputs = [(cpu.line(LINE_IRQ), cpu.line(LINE_FIQ)) for cpu in machine.cpus]
        return Gic(outputs, interrupts, lambda: machine.current.number)
    return None


def _gicv3(machine: Machine, interrupts: int, *, has_el3: bool) -> Gicv3:
    numbers = (LINE_FIQ, LINE_GROUP1, LINE_GROUP1_SECURE) if has_el3 else (LINE_FIQ, LINE_IRQ)  # by `Group`
    lines = [[cpu.line(number) for number in numbers] for cpu in machine.cpus]
    state = (lambda: is_secure(machine.current)) if has_el3 else None
    return Gicv3(lines, interrupts, lambda: machine.current.number, state)


def registers_of(gic: Controller | None) -> tuple[RegisterBank, ...]:
    """Its system registers, if it has any."""
    return (CpuRegisters(gic),) if isinstance(gic, Gicv3) else ()


def timer_inputs(gic: Controller | None, cpu: int, nobody: Line) -> Mapping[Timer, Line]:
    """The inputs of a CPU's timers."""
    return {kind: nobody if gic is None else gic.ppi(cpu, number) for kind, number in INTERRUPTS.items()}


def attach_part(machine: Machine, gic: Controller | None, facts: DeviceFacts) -> bool:
    """Attach a device of the board that is a part of the controller; False: it is none."""
    match facts.model, gic:
        case "gicv2", Gic():
            machine.attach(Distributor(gic), facts.address)
        case "gicv2-cpu", Gic():
            machine.attach(CpuInterface(gic), facts.address)
        case "gicv2m", Gic():
            first = facts.interrupt or 0
            lines = [gic.spi(first + number) for number in range(_MESSAGES)]
            machine.attach(Gicv2m(PRIVATE + first, lines), facts.address)
        case "gic-virtual", Gic():
            machine.attach(HypervisorInterface(len(machine.cpus), lambda: machine.current.number), facts.address)
        case "gic-virtual-cpu", Gic():
            machine.attach(VirtualCpuInterface(), facts.address)
        case "gicv3", Gicv3():
            machine.attach(Distributor3(gic), facts.address)
        case "gicv3-redistributors", Gicv3():
            machine.attach(Redistributors(gic, facts.size), facts.address)
        case _:
            return False
    return True
