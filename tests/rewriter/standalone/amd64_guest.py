"""Code in Unicorn, and whatever memory it touches: what some instructions do, where they are or in a trampoline."""

import random
from collections.abc import Container, Mapping
from dataclasses import dataclass

import unicorn
from unicorn import x86_const as x86

from kinst.targets.arch.amd64 import GENERAL, RBP, RSP

PAGE = 4096
SPACE = 1 << 52  # where physical addresses end, and begin again
REGISTERS = [getattr(x86, f"UC_X86_REG_{name.upper()}") for name in GENERAL]
# CF PF AF ZF SF OF, by their bits in masks of what is dead; DF, which is never said to be.
FLAGS = {16: 1 << 0, 17: 1 << 2, 18: 1 << 4, 19: 1 << 6, 20: 1 << 7, 21: 1 << 11, 32: 1 << 10}
_NOWHERE = (1 << 64) - 1


@dataclass(frozen=True)
class State:
    """Registers and flags by their bits in masks, as `kinst.rewriter.liveness` has them."""

    values: Mapping[int, int]
    pc: int

    def differs(self, other: "State") -> int:
        return sum(1 << bit for bit, value in self.values.items() if value != other.values[bit])


class Guest:
    """A CPU that has just been switched on. Memory holds noise, always the same, but for what is put there."""

    def __init__(self, parts: Mapping[int, bytes]) -> None:
        self._uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        self._uc.hook_add(unicorn.UC_HOOK_CODE, self._step)
        self._uc.hook_add(unicorn.UC_HOOK_MEM_INVALID, self._fill)
        self._uc.hook_add(unicorn.UC_HOOK_INTR, self._interrupt)
        self.pages: set[int] = set()
        self.path: list[tuple[int, int]] = []  # where it was, and the stack pointer then
        self.fault = ""
        self._within: Container[int] = ()
        self._most = 0
        for address, content in parts.items():
            self.write(address, content)

    def run(self, state: State, within: Container[int], most: int = 100) -> State:
        """To the first instruction that is not `within`, or to the one behind `most` instructions."""
        for bit, value in state.values.items():
            if bit < len(REGISTERS):
                self._uc.reg_write(REGISTERS[bit], value)
        flags = sum(state.values[bit] & mask for bit, mask in FLAGS.items())
        self._uc.reg_write(x86.UC_X86_REG_EFLAGS, flags | 2)
        self.path, self.fault, self._within, self._most = [], "", within, most
        try:
            self._uc.emu_start(state.pc, _NOWHERE)
        except unicorn.UcError as error:
            self.fault = str(error)
        found = {number: self._uc.reg_read(register) for number, register in enumerate(REGISTERS)}
        flags = self._uc.reg_read(x86.UC_X86_REG_EFLAGS)
        return State(found | {bit: flags & mask for bit, mask in FLAGS.items()}, self._uc.reg_read(x86.UC_X86_REG_RIP))

    def read(self, address: int, size: int) -> bytes:
        """What is in memory now."""
        self._touch(address, size)
        return bytes(self._uc.mem_read(address % SPACE, size))

    def write(self, address: int, content: bytes) -> None:
        self._touch(address, len(content))
        self._uc.mem_write(address % SPACE, content)

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def describe(self, table: int, number: int, limit: int) -> None:
        """Let the global descriptor table be there, with one descriptor in it: of data, for user mode."""
        low, high = limit & 0xFFFF, limit >> 16 & 15
        self.write(table, bytes(8 * number) + (low | 0xF3 << 40 | high << 48).to_bytes(8, "little"))
        self._uc.reg_write(x86.UC_X86_REG_GDTR, (0, table, 8 * (number + 1) - 1, 0))

    def _step(self, uc: unicorn.Uc, address: int, size: int, data: object) -> None:
        if address not in self._within or len(self.path) >= self._most:
            uc.emu_stop()
        else:
            self.path.append((address, uc.reg_read(REGISTERS[RSP])))

    def _interrupt(self, uc: unicorn.Uc, number: int, data: object) -> None:
        self.fault = f"exception {number}"
        uc.emu_stop()

    def _fill(self, uc: unicorn.Uc, access: int, address: int, size: int, value: int, data: object) -> bool:
        self._touch(address, max(size, 1))
        return True

    def _touch(self, address: int, size: int) -> None:
        first, last = address // PAGE, (address + size - 1) // PAGE
        for page in {number % (SPACE // PAGE) for number in range(first, last + 1)} - self.pages:
            self.pages.add(page)
            self._uc.mem_map(page * PAGE, PAGE)
            self._uc.mem_write(page * PAGE, random.Random(page).randbytes(PAGE))


def drawn(choose: random.Random, pc: int) -> State:
    """Addresses and small numbers in the registers, and a stack."""
    values = {}
    for bit in range(len(REGISTERS)):
        wide, narrow = choose.getrandbits(45) << 3, choose.getrandbits(choose.choice((1, 4, 8, 12)))
        values[bit] = choose.choice((wide, wide, narrow))
    values[RSP], values[RBP] = ((1 << 46) + (choose.getrandbits(30) << 3) for _ in range(2))
    return State(values | {bit: choose.getrandbits(32) & mask for bit, mask in FLAGS.items()}, pc)
