"""Pages whose loads and stores stop the CPU before they happen, and instructions that are executed alone.

For what hardware has and the engine lacks: watchpoints, and implicit supervisor reads of tables for an instruction of a
program. Both are done by translations: a TLB entry is decided when it is made.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from kinst.runtime.engine.qiling_machine import QilingMachine
from kinst.runtime.engine.walk_cache import WalkCache
from kinst.runtime.paging.walker import Registers

HELD: Final = -1  # the code of a `PageFault` that is not the guest's: `HeldPages` stopped the access


class PartlyCleared:
    """Registers of which some bits read as 1 or as 0."""

    def __init__(self, registers: Registers, bits: Mapping[str, int]) -> None:
        """`bits` are those that read as 1."""
        self._get, self.set, self._bits = registers.get, registers.set, bits
        self._cleared: Mapping[str, int] = {}

    def clear(self, bits: Mapping[str, int]) -> None:
        """Let these bits read as 0 from now on, and no others."""
        self._cleared = bits

    def get(self, name: str) -> int:
        """The register's value."""
        return (self._get(name) | self._bits.get(name, 0)) & ~self._cleared.get(name, 0)


class AsKernel:
    """Registers as a CPU that is in user mode would have them in the kernel, with some bits that read as 0."""

    def __init__(self, registers: Registers, bits: Mapping[str, tuple[int, int]], raised: str | None) -> None:
        """`bits`: those of a register that read as 0, and then those that read as 1. `raised`: the register that is set
        while others are read, which user mode may not read."""
        self._registers, self.set, self._bits, self._raised = registers, registers.set, bits, raised
        self._cleared: Mapping[str, int] = {}

    def clear(self, bits: Mapping[str, int]) -> None:
        """Let these bits read as 0 from now on, and no others."""
        self._cleared = bits

    def get(self, name: str) -> int:
        """The register's value."""
        cleared, added = self._bits.get(name, (0, 0))
        return (self.real(name) & ~cleared | added) & ~self._cleared.get(name, 0)

    def real(self, name: str) -> int:
        """The value that it has, though user mode may not read it."""
        registers, raised = self._registers, self._raised
        before = 0 if raised is None else registers.get(raised)
        if raised is None or before or name == raised:
            return registers.get(name)
        registers.set(raised, self._bits[raised][1])
        try:
            return registers.get(name)
        finally:
            registers.set(raised, before)


class HeldPages:
    """The held pages of one engine. While there are none, each TLB miss costs a comparison more."""

    def __init__(self, engine: QilingMachine, walks: WalkCache, registers: Registers) -> None:
        """None are held."""
        self._engine = engine
        self._walks = walks
        self._refuses: Callable[[int], bool] | None = None
        self._is_implicit: Callable[[int], bool] | None = None
        self._implicit_registers = PartlyCleared(registers, {})

    def hold(self, refuses: Callable[[int], bool] | None) -> None:
        """Let `refuses(address)` choose pages whose loads and stores stop the CPU: a `PageFault` with the code `HELD`.
        It is called for each translation that the TLB gets. None: no page is held, as at first."""
        self._refuses = refuses
        self._walks.turn(is_off=refuses is not None)  # without forgetting: kept answers stay right
        self._engine.flush_tlb()

    def execute_unheld(self, after: Callable[[], None] | None = None) -> None:
        """Let the CPU execute the next instruction with no page held. `after` is called then: what it has held instead
        counts."""
        refuses, self._refuses = self._refuses, None
        self._execute_one(refuses, after)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Accesses by a model of the CPU: no page is held meanwhile."""
        refuses, self._refuses = self._refuses, None
        try:
            yield
        finally:
            self._refuses = refuses
            if refuses is not None:  # the TLB has got what it must not keep
                self._engine.flush_tlb()

    def execute_implicitly(self, is_implicit: Callable[[int], bool], cleared: Mapping[str, int]) -> None:
        """Let the CPU execute the next instruction with pages that `is_implicit(address)` chooses translated as if some
        bits of registers were clear."""
        self._is_implicit = is_implicit
        self._implicit_registers.clear(cleared)
        self._execute_one(self._refuses)

    def _execute_one(self, refuses: Callable[[int], bool] | None, then: Callable[[], None] | None = None) -> None:
        """Have the next run execute one instruction; the translations that it gets are for it alone."""

        def after() -> None:
            self._is_implicit = None
            self.hold(refuses)
            if then is not None:
                then()

        self._walks.turn(is_off=True)
        self._engine.flush_tlb()
        self._engine.one.ask(after)

    @property
    def is_active(self) -> bool:
        """Whether any page may be held."""
        return self._refuses is not None

    def has(self, address: int) -> bool:
        """Whether a page is held."""
        return self._refuses is not None and self._refuses(address)

    def registers_for(self, address: int) -> Registers:
        """The registers that a walk for the address reads."""
        is_implicit = self._is_implicit is not None and self._is_implicit(address)
        return self._implicit_registers if is_implicit else self._walks.registers
