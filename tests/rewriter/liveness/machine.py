"""Code in Unicorn with memory everywhere: the oracle of what instructions read and write, and of what is dead."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import unicorn
from unicorn import arm64_const as a64
from unicorn import riscv_const as rv
from unicorn import x86_const as x86

from kinst.targets.arch.amd64 import GENERAL

PAGE = 4096
_POOL_PAGES = 512
_NEVER = (1 << 64) - PAGE


@dataclass(frozen=True)
class Model:
    """Unicorn's numbers: registers by their bit, and for each flag's bit which bit of the register of flags it is."""

    arch: int
    mode: int
    registers: Mapping[int, int]
    pc: int
    flag_register: int
    flag_bits: Mapping[int, int]  # bit in masks -> bits of the register


MODELS = {
    "amd64": Model(
        unicorn.UC_ARCH_X86,
        unicorn.UC_MODE_64,
        {number: getattr(x86, f"UC_X86_REG_{name.upper()}") for number, name in enumerate(GENERAL)},
        x86.UC_X86_REG_RIP,
        x86.UC_X86_REG_EFLAGS,
        {16: 1 << 0, 17: 1 << 2, 18: 1 << 4, 19: 1 << 6, 20: 1 << 7, 21: 1 << 11},
    ),
    "arm64": Model(
        unicorn.UC_ARCH_ARM64,
        unicorn.UC_MODE_ARM,
        {number: getattr(a64, f"UC_ARM64_REG_X{number}") for number in range(31)},
        a64.UC_ARM64_REG_PC,
        a64.UC_ARM64_REG_PSTATE,
        {31: 0xF << 28},
    ),
    "riscv64": Model(
        unicorn.UC_ARCH_RISCV,
        unicorn.UC_MODE_RISCV64,
        {number: getattr(rv, f"UC_RISCV_REG_X{number}") for number in range(1, 32)},
        rv.UC_RISCV_REG_PC,
        0,
        {},
    ),
}
_STACKS = {"arm64": a64.UC_ARM64_REG_SP}


@dataclass(frozen=True)
class Outcome:
    """The instructions that ran, what they stored, where they stopped, and the registers then: one value a bit."""

    path: tuple[int, ...]
    stores: tuple[tuple[int, int, int], ...]
    stopped: int
    values: Mapping[int, int]
    fault: str

    def differs(self, other: "Outcome") -> int:
        """The bits of registers and flags that are not the same."""
        return sum(1 << bit for bit, value in self.values.items() if value != other.values[bit])


class Machine:
    """A CPU that has just been switched on, `code` at `address`, and noise, always the same, everywhere else."""

    def __init__(self, name: str, code: bytes, address: int, cleared: Mapping[int, int] | None = None) -> None:
        """`cleared`: by the address of an instruction, the bits of registers that are 0 when it has run, besides."""
        self._cleared = cleared or {}
        self._name, self._model, self._code, self._address = name, MODELS[name], code, address
        self._uc = unicorn.Uc(self._model.arch, self._model.mode)
        self._uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        self._uc.mem_map(0, _POOL_PAGES * PAGE)
        self._uc.hook_add(unicorn.UC_HOOK_TLB_FILL, self._fill)
        self._uc.hook_add(unicorn.UC_HOOK_CODE, self._step)
        self._uc.hook_add(unicorn.UC_HOOK_MEM_WRITE, self._store)
        self._uc.hook_add(unicorn.UC_HOOK_INTR, self._interrupt)
        self._fault = ""
        self._pages: dict[int, int] = {}
        self._path: list[int] = []
        self._stores: list[tuple[int, int, int]] = []
        self._stops: frozenset[int] | None = None
        self._most = 0

    def run(self, start: int, values: Mapping[int, int], most: int, within: frozenset[int] | None = None) -> Outcome:
        """From `start` to `most` instructions later, or to one that is not `within`."""
        self._path, self._stores, self._stops, self._most = [], [], within, most
        self._load(values)
        self._fault = ""
        try:
            self._uc.emu_start(start, _NEVER)
        except unicorn.UcError as error:
            self._fault = str(error)
        stopped = self._uc.reg_read(self._model.pc)
        return Outcome(tuple(self._path), tuple(self._stores), stopped, self._values(), self._fault)

    def _load(self, values: Mapping[int, int]) -> None:
        flags = self._uc.reg_read(self._model.flag_register) if self._model.flag_bits else 0
        for bit, register in self._model.registers.items():
            self._uc.reg_write(register, values[bit])
        for bit, mask in self._model.flag_bits.items():
            flags = flags & ~mask | values[bit] & mask
        if self._model.flag_bits:
            self._uc.reg_write(self._model.flag_register, flags)
        if self._name in _STACKS:
            self._uc.reg_write(_STACKS[self._name], 0x7000_0000)

    def _values(self) -> Mapping[int, int]:
        found = {bit: self._uc.reg_read(register) for bit, register in self._model.registers.items()}
        if self._model.flag_bits:
            flags = self._uc.reg_read(self._model.flag_register)
            found |= {bit: flags & mask for bit, mask in self._model.flag_bits.items()}
        return found

    def _step(self, uc: unicorn.Uc, address: int, size: int, data: object) -> None:
        if len(self._path) >= self._most or (self._stops is not None and address not in self._stops):
            uc.emu_stop()
        else:
            self._path.append(address)
            bits = self._cleared.get(address, 0)
            for bit, register in self._model.registers.items() if bits else ():
                if bits >> bit & 1:
                    uc.reg_write(register, 0)

    def _store(self, uc: unicorn.Uc, access: int, address: int, size: int, value: int, data: object) -> None:
        self._stores.append((address, size, value))

    def _interrupt(self, uc: unicorn.Uc, number: int, data: object) -> None:
        self._fault = f"exception {number}"
        uc.emu_stop()

    def _fill(self, uc: unicorn.Uc, address: int, access: int, entry: object, data: object) -> bool:
        page = address // PAGE
        if page not in self._pages:
            if len(self._pages) == _POOL_PAGES:
                return False
            self._pages[page] = len(self._pages)
            uc.mem_write(self._pages[page] * PAGE, self._content(page))
        entry.paddr = self._pages[page] * PAGE + address % PAGE // 1024 * 1024  # type: ignore[attr-defined]
        entry.perms = unicorn.UC_PROT_ALL  # type: ignore[attr-defined]
        return True

    def _content(self, page: int) -> bytes:
        found = bytearray(random.Random(page).randbytes(PAGE))
        at = page * PAGE - self._address
        if -PAGE < at < len(self._code):
            part = self._code[max(at, 0) : at + PAGE]
            found[max(-at, 0) : max(-at, 0) + len(part)] = part
        return bytes(found)


def drawn_values(name: str, choose: random.Random) -> dict[int, int]:
    """A value for every register and flag: addresses and small numbers."""
    model = MODELS[name]
    found = {}
    for bit in model.registers:
        wide, narrow = choose.getrandbits(45) << 3, choose.getrandbits(choose.choice((1, 4, 8, 12)))
        found[bit] = choose.choice((wide, wide, narrow))
    return found | {bit: choose.getrandbits(32) for bit in model.flag_bits}


def poisoned(values: Mapping[int, int], bits: int, choose: random.Random) -> dict[int, int]:
    """Other values for some registers and flags."""
    return {bit: value ^ choose.getrandbits(64) if bits >> bit & 1 else value for bit, value in values.items()}
