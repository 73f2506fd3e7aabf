"""A function that is about to leave by a jump -> where the function that it jumps to will return, or why that is
unknown.

By the ABIs, a tail call leaves the stack and the link register as the function got them: the return address is on top
of the stack (amd64) or in the link register (arm64, riscv64). Code that is no C function may have anything there, so an
address is accepted only if a call returns to it or if a symbol names it.

A function that jumps to a common epilogue (riscv64's -msave-restore) still has its frame, and its own calls have set
the link register. An address in the function itself may mean that, or recursion: the unwind rule decides.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import numpy as np

from kinst.runtime.machine.system import System
from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.unwind import Rule, StackEffects, plain_address
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.symbols import STT_FUNC, STT_NOTYPE
from kinst.targets.image import Image

_WORD: Final = 8
_LONGEST_CALL: Final = 8  # bytes before a return address that are read
_PAGE: Final = 4096
_KEPT: Final = 1 << 16  # return addresses that are kept
_MASK: Final = (1 << 64) - 1


Return = tuple[int, int]  # where a function returns: an address, and the stack pointer there


class ReturnAddresses:
    """Finds return addresses. Which calls can return to one is kept."""

    def __init__(
        self,
        arch: ArchFacts,
        effects: StackEffects,
        armed: Mapping[int, bytes],
        read: Callable[[int, int], bytes],
        is_named: Callable[[int], bool],
        rule: Callable[[int], Rule | None],
    ) -> None:
        """Nothing is read until it is needed.

        Args:
            arch: the machine.
            effects: the machine's stack and calls.
            armed: instruction size -> the bytes that arm a site of that size.
            read: reads guest memory within a page, without breakpoints; empty if there is none.
            is_named: whether a symbol names exactly this address: a thread may begin there.
            rule: the unwind rule of the code at an address, if it is known.
        """
        self._arch = arch
        self._effects = effects
        self._armed = armed
        self._read = read
        self._is_named = is_named
        self._rule = rule
        self._sp, self._link = arch.stack_pointer, arch.link_register
        self._ends: dict[int, tuple[int, ...]] = {}

    def at_jump(self, firing: Firing, start: int, size: int) -> Return | str:
        """Where a tail call of the function at `start` (`size` bytes) will return; or a text that says why that is
        unknown."""
        found = self.at_entry(firing)
        if found is not None and self._link is not None and start <= found[0] < start + size:
            own, found = found[0], self._of_frame(firing)
            if found is None:
                return f"the link register holds {own:#x}, in the function itself, and its frame is not known"
        if found is None:
            return f"the stack at {firing.regs[self._sp]:#x} cannot be read"
        return found if self.call_ends(found[0]) else f"no call returns to {found[0]:#x}"

    def at_entry(self, firing: Firing) -> Return | None:
        """Where a function that was just called will return; None if its stack cannot be read."""
        regs = firing.regs
        sp = regs[self._sp]
        if self._link is not None:
            return plain_address(self._arch, regs[self._link]), sp
        try:
            return firing.frame.load(sp, _WORD), sp + self._arch.pushed_return & _MASK
        except PageFault:
            return None

    def _of_frame(self, firing: Firing) -> Return | None:
        rule = self._rule(firing.site)
        if rule is None:
            return None
        cfa = firing.regs[rule.base] + rule.offset & _MASK
        try:
            place = cfa + (rule.returns or 0) & _MASK
            address = firing.regs[rule.register] if rule.returns is None else firing.frame.load(place, _WORD)
        except PageFault:
            return None
        return plain_address(self._arch, address), cfa

    def call_ends(self, address: int) -> tuple[int, ...]:
        """The ends of blocks of code that end with the call that returns to an address: the end of the call, or of the
        breakpoint at it. Empty if no call returns there."""
        found = self._ends.get(address)
        if found is None:
            if len(self._ends) >= _KEPT:
                self._ends.clear()
            found = self._ends[address] = self._ends_of(address)
        return found

    def _ends_of(self, address: int) -> tuple[int, ...]:
        sizes = self._effects.call_sizes(self._before(address))
        if not sizes and not self._is_named(address):
            return ()
        armed = (address - size + len(self._armed.get(size, b"")) for size in sizes)
        return tuple(dict.fromkeys((address, *armed)))

    def _before(self, address: int) -> bytes:
        """The bytes before an address, as many as a call may have; fewer at the start of memory."""
        start = max(address - _LONGEST_CALL, 0)
        middle = max(address - 1 & -_PAGE, start)
        return self._read(start, middle - start) + self._read(middle, address - middle)


def reader(system: System, pristine: Callable[[int, bytes], bytes]) -> Callable[[int, int], bytes]:
    """A function that reads the guest's memory within a page, without breakpoints; it returns nothing where there is no
    memory."""

    def read(address: int, size: int) -> bytes:
        physical = system.space.observe(address)
        if physical is None or system.memory.find(physical, size) is None:
            return b""
        return pristine(address, system.memory.read(physical, size))

    return read


def named(image: Image, original: Callable[[int], int]) -> Callable[[int], bool]:
    """A function that says whether a symbol of code names an address of the running guest. `original` gives its link
    address."""

    @cache
    def addresses() -> frozenset[int]:
        table = image.symbols
        places = np.array(sorted({*table.address[np.isin(table.kind, (STT_FUNC, STT_NOTYPE))].tolist()}), np.uint64)
        inside = [places[places - np.uint64(one.address) < np.uint64(one.size)] for one in image.code_regions]
        return frozenset(address for part in inside for address in part.tolist())

    return lambda address: original(address) in addresses()
