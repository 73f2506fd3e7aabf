"""RISC-V PLIC (specification 1.0.0): interrupt sources -> an external interrupt line for every hart and mode.

0x000000 + 4 * source            priority, 0: never
0x001000                         pending, one bit per source
0x002000 + 0x80 * context        enable, one bit per source
0x200000 + 0x1000 * context      threshold, and at + 4 claim (read) and complete (write)
"""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.machine.device import Line

_PENDING: Final = 0x1000
_ENABLE: Final = 0x2000
_CONTEXT: Final = 0x200000
_PRIORITIES: Final = 7  # highest priority and threshold, as in QEMU's virt


class Plic:
    """The PLIC, a device with registers of 32 bits. Sources are levels: one that is still high after completion is
    pending again."""

    size = 0x600000

    def __init__(self, sources: int, contexts: Sequence[Line]) -> None:
        """`sources` is the number of sources, including source 0, which does not exist. `contexts` are the lines to the
        harts."""
        self._contexts = contexts
        self._priority = [0] * sources
        self._threshold = [0] * len(contexts)
        self._enabled = [0] * len(contexts)  # one bit per source, for each context
        self._claimed = [0] * len(contexts)
        self._level = 0
        self._pending = 0

    def line(self, source: int) -> Line:
        """The input of a source."""
        bit = 1 << source

        def drive(level: bool) -> None:  # noqa: FBT001 - an interrupt line is its level
            self._level = self._level | bit if level else self._level & ~bit
            if level and not self._in_service() & bit:  # the gateway forwards nothing more before completion
                self._pending |= bit
            elif not level:
                self._pending &= ~bit
            self._update()

        return drive

    def read(self, offset: int, size: int) -> int:
        """A register; 0 if there is none. Reading a claim register claims the interrupt."""
        if offset >= _CONTEXT:
            return self._read_context(*divmod(offset - _CONTEXT, 0x1000))
        if offset >= _ENABLE:
            context, start = divmod(offset - _ENABLE, 0x80)
            return self._enabled[context] >> 8 * start & 0xFFFF_FFFF if context < len(self._enabled) else 0
        if offset >= _PENDING:
            return self._pending >> 8 * (offset - _PENDING) & 0xFFFF_FFFF
        return self._priority[offset // 4] if offset // 4 < len(self._priority) else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register. Writing a claim register completes the interrupt."""
        if offset >= _CONTEXT:
            self._write_context(*divmod(offset - _CONTEXT, 0x1000), value)
        elif offset >= _ENABLE:
            context, start = divmod(offset - _ENABLE, 0x80)
            if context < len(self._enabled):
                self._enabled[context] = self._enabled[context] & ~(0xFFFF_FFFF << 8 * start) | value << 8 * start
                self._enabled[context] &= (1 << len(self._priority)) - 2
        elif 0 < offset // 4 < len(self._priority):
            self._priority[offset // 4] = value & _PRIORITIES
        self._update()

    def _read_context(self, context: int, register: int) -> int:
        if context >= len(self._contexts):
            return 0
        if register == 0:
            return self._threshold[context]
        return self._claim(context) if register == 4 else 0

    def _write_context(self, context: int, register: int, value: int) -> None:
        if context >= len(self._contexts):
            return
        if register == 0:
            self._threshold[context] = value & _PRIORITIES
        elif register == 4:
            self._claimed[context] &= ~(1 << value)
            self._pending |= self._level & 1 << value  # the gateway forwards a level again after completion

    def _claim(self, context: int) -> int:
        source = self._best(context, 0)  # a claim ignores the threshold
        if source:
            self._pending &= ~(1 << source)
            self._claimed[context] |= 1 << source
            self._update()
        return source

    def _best(self, context: int, threshold: int) -> int:
        """The pending and enabled source with the highest priority above `threshold`, the first among equals; 0 if
        none."""
        candidates = self._pending & self._enabled[context]
        best, highest = 0, threshold
        while candidates:
            source = (candidates & -candidates).bit_length() - 1
            candidates &= candidates - 1
            if self._priority[source] > highest:
                best, highest = source, self._priority[source]
        return best

    def _in_service(self) -> int:
        claimed = 0
        for sources in self._claimed:
            claimed |= sources
        return claimed

    def _update(self) -> None:
        for context, line in enumerate(self._contexts):
            line(self._best(context, self._threshold[context]) != 0)
