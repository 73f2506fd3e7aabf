"""A riscv64 board of a board file: its devices, and harts started as the file says.

In M mode every hart starts at the image's entry. In S mode hart 0 does, and the machine itself answers SBI calls.
"""

from kinst.runtime.machine.board import BoardFactory
from kinst.runtime.machine.boards.device_library import attach_device, no_line
from kinst.runtime.machine.boards.memory_cards import Sockets
from kinst.runtime.machine.boards.plain_tree import place_tree, registers_at_start
from kinst.runtime.machine.boards.riscv64_hart import reset
from kinst.runtime.machine.device import Line
from kinst.runtime.machine.devices.riscv.clint import Clint, MachineTime
from kinst.runtime.machine.devices.riscv.plic import Plic
from kinst.runtime.machine.devices.riscv.sbi import Sbi
from kinst.runtime.machine.exceptions.riscv64 import MEIP, MSIP, MTIP, SEIP, SSIP, STIP, Riscv64Exceptions
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.machine import Cpu, Machine


class PlainRiscv64:
    """The board; implements `kinst.runtime.machine.board.Board`."""

    def __init__(self, machine: Machine) -> None:
        """Nothing is attached yet."""
        self._machine = machine
        assert machine.facts.start is not None, "a plain board says how it starts"
        self._is_supervisor = machine.facts.start.level == "S"
        self._time = MachineTime(machine.clock, machine.facts.timebase)
        self._plic = _plic(machine)
        self.exceptions = Riscv64Exceptions(self._time.ticks)

    def start(self, image: Loaded) -> None:
        """Attach the devices, write the device tree, and start the harts."""
        machine, start = self._machine, self._machine.facts.start
        assert start is not None, "a plain board says how it starts"
        self.exceptions.on_reset(reset)
        clint = self._clint()
        machine.attach_timed(clint)
        sockets = Sockets(machine)
        for name in machine.facts.devices:
            self._attach(name, clint, sockets)
        tree = place_tree(machine, image)
        for cpu in machine.cpus:
            cpu.registers.set("mhartid", cpu.number)
        if self._is_supervisor:
            interrupts = [cpu.line(SSIP) for cpu in machine.cpus]
            self.exceptions.run_above(Sbi(machine, clint, interrupts, self._start_hart))
            reset(machine.cpus[0], image.physical_entry if start.entry is None else start.entry, tree)
        for cpu in machine.cpus[: 1 if self._is_supervisor else None]:
            for name, value in registers_at_start(machine, {"fdt": tree}, cpu.number).items():
                cpu.registers.set(name, value)
            if not self._is_supervisor:
                cpu.registers.set("pc", image.entry if start.entry is None else start.entry)
                cpu.power_on()

    def _clint(self) -> Clint:
        """The timers and software interrupts, also where the guest cannot see them: SBI calls set them."""
        bits = (SSIP, STIP) if self._is_supervisor else (MSIP, MTIP)
        lines = ([cpu.line(bit) for cpu in self._machine.cpus] for bit in bits)
        return Clint(self._time, *lines)

    def _attach(self, name: str, clint: Clint, sockets: Sockets) -> None:
        machine = self._machine
        facts = machine.facts.devices[name]
        if facts.model == "clint":
            machine.attach(clint, facts.address)
        elif facts.model == "plic" and self._plic is not None:
            machine.attach(self._plic, facts.address)
        else:
            attach_device(machine, name, facts, self._line, sockets)

    def _line(self, number: int) -> Line:
        return no_line if self._plic is None else self._plic.line(number)

    def _start_hart(self, cpu: Cpu, entry: int, argument: int) -> None:
        self.exceptions.reset_before_running(cpu, entry, argument)


def _plic(machine: Machine) -> Plic | None:
    """The interrupt controller; None: the board has none that is known here."""
    found = next((one for one in machine.facts.devices.values() if one.model == "plic"), None)
    if found is None:
        return None
    contexts: list[Line] = [cpu.line(bit) for cpu in machine.cpus for bit in (MEIP, SEIP)]
    return Plic(found.properties["sources"], contexts)


BOARD: BoardFactory = PlainRiscv64
