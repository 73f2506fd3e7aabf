"""Addresses of the kernel's while user mode runs with tables that lack it -> where the kernel's own tables have them.

A kernel that isolates its page tables (Linux' PTI) has two sets for each process and changes from one to the other with
a bit of a register. A probe may fire in user mode, by a timer, and its clause asks for the task: that is in the kernel.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kinst.runtime.clauses.guest.guest_memory import Translate

_KERNEL: Final = 1 << 63


def with_kernel(
    observe: Translate,
    observe_without: Callable[[Mapping[str, int], int], int | None],
    register: Callable[[str], int],
    bits: Sequence[tuple[str, int]],
    known: int | None,
) -> Translate:
    """A translation by `observe`, and where that finds nothing in the kernel's half, by the tables that are chosen
    without `bits` of registers, if these are set and the tables in use lack the kernel.

    Args:
        observe: a translation by the tables in use.
        observe_without: one by the tables that other registers would choose.
        register: reads a register of the CPU.
        bits: registers and the bits that choose user mode's tables.
        known: an address that the kernel's own tables always map; None: it has no such tables.
    """
    if not bits or known is None:
        return observe
    cleared = dict(bits)

    def translate(address: int) -> int | None:
        found = observe(address)
        if found is not None or not address & _KERNEL or observe(known) is not None:
            return found
        return observe_without(cleared, address) if all(register(name) & mask for name, mask in bits) else None

    return translate
