"""The state of one CPU at a trap, as probes and emulated instructions see it."""

from collections.abc import Callable, MutableSequence

Load = Callable[[int, int], int]
Store = Callable[[int, int, int], None]


class TrapFrame:
    """FreeBSD's struct trapframe, and the memory of the interrupted context.

    `regs` has one unsigned 64-bit word per register, in the order of `ArchFacts.registers`; values must be masked to 64
    bits. ``load(address, size)`` and ``store(address, size, value)`` access guest virtual memory, little-endian and
    unsigned. An access that the guest may not make raises `PageFault`, so an effect accesses memory before it changes
    any register. ``set_vector(number, value)`` sets a 128-bit SIMD register (arm64 literal loads); a narrow value
    clears the upper part.
    """

    __slots__ = ("load", "regs", "set_vector", "store")

    def __init__(
        self, regs: MutableSequence[int], load: Load, store: Store, set_vector: Callable[[int, int], None]
    ) -> None:
        self.regs = regs
        self.load = load
        self.store = store
        self.set_vector = set_vector

    def show(self, regs: MutableSequence[int]) -> None:
        """Have other registers from now on. Only where nobody has kept a reference to `regs`, as closures of sites
        do."""
        self.regs = regs
