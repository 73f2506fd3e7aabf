"""The registers of a stopped machine's CPUs, by their numbers in the protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kinst.runtime.debugger.machines.registry import registers_of
from kinst.runtime.debugger.register_table import Register
from kinst.runtime.machine.system import System
from kinst.targets.errors import UsageError

_HIGHEST: Final = 3  # machine mode (RISC-V Privileged Architecture 1.2)


class Registers:
    """Those of one machine. The CPU whose registers are read is the current one (`System.show`)."""

    def __init__(self, system: System) -> None:
        """The machine need not have run."""
        self._system = system
        self.table = registers_of(system.arch)
        self._pc = next(number for number, one in enumerate(self.table.all) if one.name == self.table.pc)

    @property
    def pc(self) -> int:
        """Where the current CPU goes on, as the guest sees it: no address in a trampoline."""
        return self._system.trap.shown(self._system.engine.pc())

    def general(self) -> bytes:
        """The content of a `g` packet."""
        return b"".join(map(self._content, self.table.general))

    def set_general(self, content: bytes) -> None:
        """Set what a `G` packet has, and what differs of it alone: to write a register may have effects. Raises
        UsageError."""
        at = 0
        for number, register in enumerate(self.table.general):
            part = content[at : at + register.size]
            at += register.size
            if len(part) == register.size and part != self._content(register):
                self.set(number, part)

    def get(self, number: int) -> bytes | None:
        """The content of one; None: there is no such register."""
        if number >= len(self.table.all):
            return None
        register = self.table.all[number]
        with self._privileged(register):
            return self._content(register)

    def set(self, number: int, content: bytes) -> None:
        """Set one. Raises UsageError: it cannot have that value."""
        if number >= len(self.table.all):
            raise UsageError(f"there is no register {number}")
        register = self.table.all[number]
        if len(content) != register.size:
            raise UsageError(f"{register.name} has {register.size} bytes, not {len(content)}")
        value = int.from_bytes(content, "little")
        if number == self._pc:
            self._system.trap.original(self._system.engine.pc())  # if it is in a trampoline, that is over
            self._system.engine.set_pc(value)
            return
        with self._privileged(register):
            if register.source and self._content(register) != content:
                self._system.engine.live.set(register.source, value)
                self._system.engine.flush_tlb()  # translations may depend on it
            now = self._content(register)
        if now != content:
            raise UsageError(f"{register.name} cannot be {value:#x}: it is {int.from_bytes(now, 'little'):#x}")

    def _content(self, register: Register) -> bytes:
        if register.name == self.table.pc:
            return self.pc.to_bytes(register.size, "little")
        value = self._system.engine.live.get(register.source) if register.source else 0
        return (value & (1 << register.bits) - 1).to_bytes(register.size, "little")

    @contextmanager
    def _privileged(self, register: Register) -> Iterator[None]:
        """Unicorn gives no value for a register of a mode that is above the CPU's."""
        name, live = self.table.privilege, self._system.engine.live
        before = _HIGHEST if name is None or name == register.source or not register.is_system else live.get(name)
        if name is None or before == _HIGHEST:
            yield
            return
        live.set(name, _HIGHEST)
        try:
            yield
        finally:
            live.set(name, before)
