"""One arm64 or riscv64 instruction in Unicorn, at any address, with memory everywhere: the oracle for `emulation`.

Unicorn's virtual TLB maps whatever page is touched; a page never written holds bytes that follow from its number, the
same in every run and in `Memory`, which is what our emulation works on.
"""

import random
from collections.abc import Container, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field

import unicorn
from unicorn import arm64_const as a64
from unicorn import riscv_const as rv

PAGE = 4096
_POOL_PAGES = 64
_MASK = (1 << 64) - 1
NEVER = _MASK - 0xFFF  # an address where no run ends


@dataclass(frozen=True)
class Model:
    """What differs between the machines: Unicorn's numbers, and what must be switched on."""

    arch: int
    mode: int
    general: tuple[int, ...]  # in the order of the frame, without the flags; the PC is the last
    flags: int | None
    vectors: tuple[int, ...]
    switches: Mapping[int, int]


ARM64_MODEL = Model(
    arch=unicorn.UC_ARCH_ARM64,
    mode=unicorn.UC_MODE_ARM,
    general=(
        *(a64.UC_ARM64_REG_X0 + number for number in range(29)),
        *(a64.UC_ARM64_REG_X29, a64.UC_ARM64_REG_X30, a64.UC_ARM64_REG_SP, a64.UC_ARM64_REG_PC),
    ),
    flags=a64.UC_ARM64_REG_PSTATE,
    vectors=tuple(a64.UC_ARM64_REG_Q0 + number for number in range(32)),
    switches={a64.UC_ARM64_REG_CPACR_EL1: 3 << 20},  # FPEN
)
RISCV64_MODEL = Model(
    arch=unicorn.UC_ARCH_RISCV,
    mode=unicorn.UC_MODE_RISCV64,
    general=(*(rv.UC_RISCV_REG_X0 + number for number in range(32)), rv.UC_RISCV_REG_PC),
    flags=None,
    vectors=tuple(rv.UC_RISCV_REG_F0 + number for number in range(32)),
    switches={rv.UC_RISCV_REG_MSTATUS: 3 << 13},  # FS dirty
)


@dataclass(frozen=True)
class State:
    """Registers in the order of the frame, and the SIMD or floating point registers."""

    regs: tuple[int, ...]
    vectors: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """The state after a run, the pages that it changed, and how it ended if not as asked."""

    state: State
    pages: dict[int, bytes]
    fault: str


def page_content(page: int, code: Mapping[int, bytes]) -> bytes:
    """What a page holds at first: noise, and code (address -> bytes) where there is some."""
    content = bytearray(random.Random(page).randbytes(PAGE))
    for start, written in code.items():
        for at, byte in enumerate(written, start - page * PAGE):
            if 0 <= at < PAGE:
                content[at] = byte
    return bytes(content)


@dataclass
class Memory:
    """A trap frame over the same memory."""

    regs: MutableSequence[int]
    vectors: list[int]
    code: Mapping[int, bytes]
    pages: dict[int, bytearray] = field(default_factory=dict)

    def load(self, address: int, size: int) -> int:
        return int.from_bytes((self._page(address + at)[(address + at) % PAGE] for at in range(size)), "little")

    def store(self, address: int, size: int, value: int) -> None:
        for at, byte in enumerate((value & (1 << 8 * size) - 1).to_bytes(size, "little")):
            self._page(address + at)[(address + at) % PAGE] = byte

    def set_vector(self, number: int, value: int) -> None:
        self.vectors[number] = value

    def outcome(self) -> Outcome:
        changed = {
            page: bytes(content) for page, content in self.pages.items() if content != page_content(page, self.code)
        }
        return Outcome(State(tuple(self.regs), tuple(self.vectors)), changed, "")

    def _page(self, address: int) -> bytearray:
        page = (address & _MASK) // PAGE
        if page not in self.pages:
            self.pages[page] = bytearray(page_content(page, self.code))
        return self.pages[page]


class Cpu:
    """A CPU that has just been switched on, with memory at every address."""

    def __init__(self, model: Model, code: Mapping[int, bytes]) -> None:
        self._model, self._code = model, code
        self._uc = unicorn.Uc(model.arch, model.mode)
        self._uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        self._uc.mem_map(0, _POOL_PAGES * PAGE)
        self._uc.hook_add(unicorn.UC_HOOK_TLB_FILL, self._fill)
        self._pages: dict[int, int] = {}  # page -> number in the pool
        for register, value in model.switches.items():
            self._uc.reg_write(register, value)

    def run_within(
        self, state: State, start: int, places: Container[int], register: int, *, most: int
    ) -> tuple[Outcome, list[tuple[int, int]]]:
        """From `start` until control leaves some places or comes back to `start`; and the addresses of the instructions
        that ran, with what was in a register before each."""
        path: list[tuple[int, int]] = []

        def step(uc: unicorn.Uc, address: int, size: int, data: object) -> None:
            if path and (address == start or address not in places):
                uc.emu_stop()
            else:
                path.append((address, uc.reg_read(self._model.general[register])))

        hook = self._uc.hook_add(unicorn.UC_HOOK_CODE, step)
        outcome = self.run(state, start, count=most)
        self._uc.hook_del(hook)
        return outcome, path

    def run(self, state: State, start: int, *, count: int) -> Outcome:
        """`count` instructions from `start`."""
        self._load(state)
        fault = ""
        try:
            self._uc.emu_start(start, NEVER, count=count)
        except unicorn.UcError as error:
            fault = str(error)
        changed = {
            page: content
            for page, number in self._pages.items()
            if (content := bytes(self._uc.mem_read(number * PAGE, PAGE))) != page_content(page, self._code)
        }
        return Outcome(self._state(), changed, fault)

    def _load(self, state: State) -> None:
        general = len(self._model.general)
        self._write(self._model.general[:-1], state.regs[: general - 1])
        self._write(self._model.vectors, state.vectors)
        if self._model.flags is not None:
            self._uc.reg_write(self._model.flags, state.regs[general])

    def _write(self, registers: Sequence[int], values: Sequence[int]) -> None:
        for register, value in zip(registers, values, strict=True):
            self._uc.reg_write(register, value)

    def _state(self) -> State:
        regs = [self._uc.reg_read(register) for register in self._model.general]
        if self._model.flags is not None:
            regs.append(self._uc.reg_read(self._model.flags))
        return State(tuple(regs), tuple(self._uc.reg_read(register) for register in self._model.vectors))

    def _fill(self, uc: unicorn.Uc, address: int, access: int, entry: object, data: object) -> bool:
        """Unicorn asks in pages of 1 KiB on arm64: what is answered is the address within the page."""
        page = address // PAGE
        if page not in self._pages:
            self._pages[page] = len(self._pages)
            uc.mem_write(self._pages[page] * PAGE, page_content(page, self._code))
        entry.paddr = self._pages[page] * PAGE + address % PAGE  # type: ignore[attr-defined]
        entry.perms = unicorn.UC_PROT_ALL  # type: ignore[attr-defined]
        return True
