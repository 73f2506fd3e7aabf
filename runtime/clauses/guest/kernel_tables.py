"""Kernel addresses while user mode runs on page tables that do not map them -> a translation by the kernel's own
tables.

A kernel that isolates its page tables (Linux' PTI) has two sets for each process and switches between them by a bit of
a register (CR3 on amd64). A timer probe may fire in user mode, and what its clause reads, such as execname, is in
kernel memory.
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
    """A translation by `observe`, and for kernel addresses that it does not map, by the tables that are selected with
    `bits` cleared, if these are set and the tables in use do not map the kernel.

    Args:
        observe: a translation by the tables in use.
        observe_without: one by the tables that given registers with cleared bits would select.
        register: reads a register of the CPU.
        bits: registers and the bits in them that select user mode's tables.
        known: an address that the kernel's own tables always map; None: this kernel is not known.
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
