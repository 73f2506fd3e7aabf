"""One arm64 or riscv64 instruction in Unicorn, at any address, with memory everywhere: the oracle for `emulation`.

A page never written holds bytes that follow from its number, the same in every run and in `Memory`, which is what our
emulation works on.
"""

import random
from collections.abc import Container, Mapping, MutableSequence
from dataclasses import dataclass, field

import unicorn
from unicorn import arm64_const as a64
from unicorn import riscv_const as rv

from tests.runtime.trap.arch.unicorn_engines import PAGE, Engine, Switches

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
    switches: Switches


ARM64_MODEL = Model(
    arch=unicorn.UC_ARCH_ARM64,
    mode=unicorn.UC_MODE_ARM,
    general=(
        *(a64.UC_ARM64_REG_X0 + number for number in range(29)),
        *(a64.UC_ARM64_REG_X29, a64.UC_ARM64_REG_X30, a64.UC_ARM64_REG_SP, a64.UC_ARM64_REG_PC),
    ),
    flags=a64.UC_ARM64_REG_PSTATE,
    vectors=tuple(a64.UC_ARM64_REG_Q0 + number for number in range(32)),
    switches=((a64.UC_ARM64_REG_CPACR_EL1, 3 << 20),),  # FPEN
)
RISCV64_MODEL = Model(
    arch=unicorn.UC_ARCH_RISCV,
    mode=unicorn.UC_MODE_RISCV64,
    general=(*(rv.UC_RISCV_REG_X0 + number for number in range(32)), rv.UC_RISCV_REG_PC),
    flags=None,
    vectors=tuple(rv.UC_RISCV_REG_F0 + number for number in range(32)),
    switches=((rv.UC_RISCV_REG_MSTATUS, 3 << 13),),  # FS dirty
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
        self._model = model
        self._engine = Engine(
            model.arch, model.mode, lambda page: page_content(page, code), model.switches, counted=True
        )

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

        hook = self._engine.uc.hook_add(unicorn.UC_HOOK_CODE, step)
        outcome = self.run(state, start, count=most)
        self._engine.uc.hook_del(hook)
        return outcome, path

    def run(self, state: State, start: int, *, count: int) -> Outcome:
        """`count` instructions from `start`."""
        self._load(state)
        fault = ""
        try:
            self._engine.uc.emu_start(start, NEVER, count=count)
        except unicorn.UcError as error:
            fault = str(error)
        return Outcome(self._state(), self._engine.changed_pages(), fault)

    def _load(self, state: State) -> None:
        general = len(self._model.general)
        self._engine.write(self._model.general[:-1], state.regs[: general - 1])
        self._engine.write(self._model.vectors, state.vectors)
        if self._model.flags is not None:
            self._engine.uc.reg_write(self._model.flags, state.regs[general])

    def _state(self) -> State:
        regs = self._engine.read(self._model.general)
        if self._model.flags is not None:
            regs += (self._engine.uc.reg_read(self._model.flags),)
        return State(regs, self._engine.read(self._model.vectors))
