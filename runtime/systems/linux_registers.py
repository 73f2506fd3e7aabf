"""struct pt_regs, in which Linux saves the registers of what it interrupts -> registers in the order of the trap frame.

On entry from user mode the kernel saves them at the very end of the task's kernel stack.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from kinst.runtime.clauses.profiles import Guest
from kinst.runtime.trap.faults import Fault
from kinst.targets.c_types import Aggregate, Array, CType, ImageTypes, size_of, strip

_SAVED: Final = "struct pt_regs"
_ELEMENT: Final = re.compile(r"(\w+)(?:\[(\d+)\])?")
# The end of the first task's stack, without what is left free there (x86 with FRED), and its beginning.
_FIRST_END, _FIRST_START = "__top_init_kernel_stack", "init_stack"
_TEXT: Final = ("_stext", "_end")  # with the code that is there only while the kernel starts
_WORD: Final = 8


def saved_from_user(symbol: Callable[[str], int | None], types: ImageTypes, stack_size: int | None) -> int | None:
    """The offset of user mode's registers from the start of a task's stack, in bytes; None: it is not known.

    Args:
        symbol: gives addresses of symbols.
        types: those of the kernel.
        stack_size: that of the kernel's stacks in bytes, if it is known.
    """
    end, start = map(symbol, (_FIRST_END, _FIRST_START))
    if end is not None and start is not None:
        return end - start
    kind = _saved(types)
    return None if kind is None or stack_size is None else stack_size - kind.size


def _saved(types: ImageTypes) -> Aggregate | None:
    found = types.type_named(_SAVED)
    kind = None if found is None else strip(found)
    return kind if isinstance(kind, Aggregate) and kind.members is not None else None


class SavedRegisters:
    """The layout of struct pt_regs in one kernel."""

    def __init__(self, guest: Guest) -> None:
        """Nothing is looked up yet."""
        self._guest, self._memory = guest, guest.memory

    @cached_property
    def from_user(self) -> int | None:
        """See `saved_from_user`."""
        return saved_from_user(self._guest.symbol, self._guest.types, self._guest.stack_size)

    def at(self, address: int) -> Sequence[int] | None:
        """The registers that are saved at an address; those that are not saved are 0. None: nothing is mapped there."""
        kind = self._kind
        if kind is None:
            return None
        try:
            saved = self._memory.read(address, kind.size)
        except Fault:
            return None
        return [0 if at is None else int.from_bytes(saved[at : at + _WORD], "little") for at in self._offsets]

    def of_kernel(self, address: int) -> Sequence[int] | None:
        """As `at`, if they are those of the kernel's own code; else None."""
        regs = self.at(address) if address % _WORD == 0 else None
        if regs is None or not self._is_code(regs[self._guest.arch.pc]):
            return None
        name, mask, values = self._guest.arch.linux.saved_mode
        at = self._offset(name)
        if at is None or self._word(address + at) & mask not in values:
            return None
        return regs

    def _word(self, address: int) -> int:
        try:
            return self._memory.load(address, _WORD)
        except Fault:
            return 0

    def _is_code(self, address: int) -> bool:
        """Whether an address is one of the kernel's own code, wherever that was moved."""
        start, end = self._text
        return start <= address < end

    @cached_property
    def _text(self) -> tuple[int, int]:
        found = [self._guest.symbol(name) for name in _TEXT]
        start, end = (0 if address is None else address + self._guest.bias for address in found)
        return start, end

    @cached_property
    def _kind(self) -> Aggregate | None:
        return _saved(self._guest.types)

    @cached_property
    def _offsets(self) -> tuple[int | None, ...]:
        return tuple(map(self._offset, self._guest.arch.linux.saved_registers))

    def _offset(self, name: str) -> int | None:
        """Where a member is, or one of its elements: `ax`, `regs[3]`."""
        found = _ELEMENT.fullmatch(name)
        member = None if found is None or self._kind is None else self._kind.find(found[1])
        if found is None or member is None:
            return None
        return member.offset + int(found[2] or 0) * _element_size(member.type)


def _element_size(kind: CType) -> int:
    plain = strip(kind)
    return (size_of(plain.element) or 0) if isinstance(plain, Array) else 0
