"""A firing -> the registers that its function's caller will have when the function returns, and so on outwards.

Of a caller only the stack pointer and the callee-saved registers are known, which call frame information finds. Without
it only the stack pointer is known: a wrong value would be worse than none.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.frame_rules import FrameRules
from kinst.runtime.unwinding.unwind import Rule
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.debuginfo.call_frames import FrameRow, Moved, Saved, Value

_WORD: Final = 8
_MASK: Final = (1 << 64) - 1


class Activation(NamedTuple):
    """A function that is being executed: a link address in it, and its registers by index in the trap frame, None if
    not known. `is_inner`: the code at the address is executed next; otherwise it is where a call will return."""

    address: int
    register: Callable[[int], int | None]
    is_inner: bool

    @property
    def inside(self) -> int:
        """An address that is surely in the function: what follows a call may belong to another one."""
        return self.address if self.is_inner else self.address - 1


class CallerFrames:
    """A walk outwards that restores registers. (That of `MachineStacks` does not, and is faster.)"""

    def __init__(self, arch: ArchFacts, rules: FrameRules, memory: Memory) -> None:
        """Nothing is read until a frame is needed."""
        self._numbers = arch.unwind.dwarf_registers
        self._preserved = {self._numbers[number]: number for number in arch.unwind.preserved}
        self._sp = arch.stack_pointer
        self._frame_rules = rules
        self.link_address = rules.link_address
        self._memory = memory
        self._rules: dict[tuple[int, bool], tuple[Rule | None, FrameRow | None]] = {}

    def innermost(self, firing: Firing) -> Activation:
        """The function in which a probe fired."""
        return Activation(self.link_address(firing.site), firing.regs.__getitem__, is_inner=True)

    def index_of(self, number: int) -> int | None:
        """The index in the trap frame of a register that DWARF numbers."""
        index = self._numbers[number] if 0 <= number < len(self._numbers) else -1
        return None if index < 0 else index

    def is_stack_pointer(self, number: int) -> bool:
        """Whether DWARF's number is that of the stack pointer."""
        return self.index_of(number) == self._sp

    def frame_address(self, activation: Activation) -> int | None:
        """The canonical frame address; None if it is not known."""
        rule = self._rule(activation)[0]
        base = None if rule is None else activation.register(rule.base)
        return None if rule is None or base is None else base + rule.offset & _MASK

    def caller(self, activation: Activation) -> Activation | None:
        """The function that called it; None if it is not known."""
        (rule, row), cfa = self._rule(activation), self.frame_address(activation)
        if rule is None or cfa is None:
            return None
        address = activation.register(rule.register) if rule.returns is None else self._word(cfa + rule.returns)
        if address is None:
            return None
        returned = self._frame_rules.returned_to(address)
        if returned is None:
            return None
        return Activation(returned[1], partial(self._restored, activation, row, cfa), is_inner=False)

    def _restored(self, activation: Activation, row: FrameRow | None, cfa: int, index: int) -> int | None:
        """The value that a register will have in the caller of an activation; None if it is not known."""
        if index == self._sp:
            return cfa
        number = self._preserved.get(index)
        if row is None or number is None:
            return None
        match row.registers.get(number):
            case None:  # without a rule a callee-saved register has the caller's value (DW_CFA_same_value)
                return activation.register(index)
            case Saved(offset=offset):
                return self._word(cfa + offset)
            case Value(offset=offset):
                return cfa + offset & _MASK
            case Moved(register=other):
                other_index = self.index_of(other)
                return None if other_index is None else activation.register(other_index)
            case _:
                return None

    def _rule(self, activation: Activation) -> tuple[Rule | None, FrameRow | None]:
        key = activation.address, activation.is_inner
        found = self._rules.get(key)
        if found is None:
            unwinder, address = self._frame_rules.unwinder, activation.address
            if not unwinder.is_code(activation.inside):
                rule = None
            else:
                rule = unwinder.rule_at(address) if activation.is_inner else unwinder.rule_in_call(address)
            found = self._rules[key] = rule, unwinder.row_at(activation.inside)
        return found

    def _word(self, address: int) -> int | None:
        try:
            return self._memory.load(address & _MASK, _WORD)
        except Fault:
            return None
