"""Kernel addresses while the CPU is in user mode -> a translation as the kernel has it.

A timer probe may fire in user mode, and what its clause reads, such as execname, is in kernel memory, which user mode
may not read. A kernel that isolates its page tables (Linux' PTI) has two sets for each process besides, and switches
between them by a bit of a register (CR3 on amd64).
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
    is_user: Callable[[], bool] = lambda: False,
) -> Translate:
    """A translation by `observe`, and for kernel addresses that it does not map, in the kernel, by the tables that are
    selected with `bits` cleared: in user mode, or if these are set and the tables in use do not map the kernel.

    Args:
        observe: a translation by the tables in use.
        observe_without: one in the kernel, by the tables that given registers with cleared bits would select.
        register: reads a register of the CPU.
        bits: registers and the bits in them that select user mode's tables.
        known: an address that the kernel's own tables always map; None: this kernel is not known.
        is_user: whether the CPU is in user mode.
    """
    if known is None:
        return observe
    cleared = dict(bits)

    def translate(address: int) -> int | None:
        found = observe(address)
        if found is not None or not address & _KERNEL or observe(known) is not None:
            return found
        has_others = bool(bits) and all(register(name) & mask for name, mask in bits)
        return observe_without(cleared, address) if has_others or is_user() else None

    return translate
