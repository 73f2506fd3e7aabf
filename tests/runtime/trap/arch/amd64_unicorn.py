"""One amd64 instruction in Unicorn, at any address, with memory everywhere: the oracle of what we emulate or displace.

A page never written holds bytes that follow from its number, the same in every run and in `Memory`, which is what our
emulator works on.
"""

import random
from collections.abc import MutableSequence
from dataclasses import dataclass, field

import unicorn
from unicorn import x86_const as x86

from kinst.targets.arch.amd64 import AMD64
from tests.runtime.trap.arch.unicorn_engines import PAGE, Engine

COMPARED = AMD64.registers[:20]  # without the selectors, which nothing here changes
_REGISTERS = [getattr(x86, f"UC_X86_REG_{name.upper().replace('RFLAGS', 'EFLAGS')}") for name in COMPARED]
_XMM = [getattr(x86, f"UC_X86_REG_XMM{number}") for number in range(16)]


@dataclass(frozen=True)
class State:
    """Registers in the order of the frame (as far as it is used here) and the 16 SSE registers."""

    regs: tuple[int, ...]
    xmm: tuple[int, ...] = (0,) * 16


@dataclass(frozen=True)
class Outcome:
    """What one instruction did: the state after it, the pages it changed, and how it failed if it did."""

    state: State
    pages: dict[int, bytes]
    fault: str = ""


def page_content(page: int, code: dict[int, bytes]) -> bytes:
    """What a page holds at first: noise, and over it the `code` (address -> bytes) that lies in it."""
    content = bytearray(random.Random(page).randbytes(PAGE))
    for start, instruction in code.items():
        for at, byte in enumerate(instruction, start - page * PAGE):
            if 0 <= at < PAGE:
                content[at] = byte
    return bytes(content)


@dataclass
class Memory:
    """64-bit memory and registers as our emulator sees them. `code` lies over what pages hold at first."""

    regs: MutableSequence[int]
    code: dict[int, bytes]
    pages: dict[int, bytearray] = field(default_factory=dict)

    @property
    def changed(self) -> dict[int, bytes]:
        """The pages that do not hold what they held at first."""
        return {
            page: bytes(content) for page, content in self.pages.items() if content != page_content(page, self.code)
        }

    def load(self, address: int, size: int) -> int:
        return int.from_bytes((self._byte(address + at) for at in range(size)), "little")

    def store(self, address: int, size: int, value: int) -> None:
        for at, byte in enumerate((value & (1 << 8 * size) - 1).to_bytes(size, "little")):
            page, offset = divmod(address + at & (1 << 64) - 1, PAGE)
            self._page(page)[offset] = byte

    def set_vector(self, number: int, value: int) -> None:
        raise AssertionError("no amd64 instruction that we emulate writes one")

    def _byte(self, address: int) -> int:
        page, offset = divmod(address & (1 << 64) - 1, PAGE)
        return self._page(page)[offset]

    def _page(self, page: int) -> bytearray:
        if page not in self.pages:
            self.pages[page] = bytearray(page_content(page, self.code))
        return self.pages[page]


class Cpu:
    """A CPU with memory at every address, holding `code` (address -> bytes)."""

    def __init__(self, code: dict[int, bytes]) -> None:
        self._code = code

    def run(self, state: State, start: int, until: int, count: int = 0) -> Outcome:
        """From the state after power-on: from `start` until RIP is `until` or `count` instructions were executed."""
        engine = Engine(
            unicorn.UC_ARCH_X86, unicorn.UC_MODE_64, lambda page: page_content(page, self._code), counted=count > 0
        )
        engine.write(_REGISTERS, state.regs)
        engine.write(_XMM, state.xmm)
        fault = ""
        try:
            engine.uc.emu_start(start, until, count=count)
        except unicorn.UcError as error:
            fault = str(error)
        left = State(engine.read(_REGISTERS), engine.read(_XMM))
        return Outcome(left, engine.changed_pages(), fault)
