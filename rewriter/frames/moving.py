"""Rules at an instruction, and what a trampoline has done since -> the rules in the trampoline.

The CFA stays where it is. If it is a distance from the stack pointer, that becomes longer by as much as the pointer has
moved down; registers that the rules name, or that must survive a call, are where the trampoline has put them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kinst.rewriter.frames.states import (
    BREG,
    BREGX,
    CONSTS,
    DEREF,
    PLUS,
    Building,
    How,
    Motion,
    Rule,
    State,
    based,
    building_of,
    signed,
)
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb, signed_leb

Homes = Mapping[int, tuple[int | None, int | None]]
_LITERAL: Final = range(0x30, 0x50)  # DW_OP_lit0 to lit31
_AND: Final = 0x1A
# Operands of the operations that are known, as letters: a byte count, u for ULEB128, s for SLEB128.
_OPERANDS: Final = {
    **dict.fromkeys((0x06, *range(0x12, 0x15), *range(0x16, 0x23), *range(0x24, 0x28), *range(0x29, 0x2F), 0x96), ""),
    **dict.fromkeys(_LITERAL, ""),
    **dict.fromkeys((0x08, 0x09, 0x15, 0x94), "1"),
    **dict.fromkeys((0x0A, 0x0B, 0x28, 0x2F), "2"),
    **dict.fromkeys((0x0C, 0x0D), "4"),
    **dict.fromkeys((0x0E, 0x0F), "8"),
    **dict.fromkeys((0x10, 0x23), "u"),
    CONSTS: "s",
}


class UntoldError(Exception):
    """Nothing tells where the frame is."""


def stopped(stack_pointer: int, return_register: int) -> State:
    """The rules of a place from which nobody can unwind."""
    return State(stack_pointer, 0, rules=((return_register, (How.LOST, 0, b"")),))


class Mover:
    """Moves the rules of one machine. `kept` are registers that a function must restore."""

    def __init__(self, stack_pointer: int, pc: int | None, return_register: int, kept: Collection[int]) -> None:
        """All in DWARF's numbers; `pc`: of the program counter, if it has one."""
        self._sp, self._pc, self._return, self._kept = stack_pointer, pc, return_register, kept

    def moved(self, state: State, motion: Motion, address: int) -> State:
        """The rules after a motion. `address` is that of the instruction: expressions may refer to it."""
        homes = motion.by_register
        try:
            found = building_of(state)
            self._move_cfa(found, motion, homes, address)
            for register, rule in state.rules:
                found.rules[register] = self._rule(rule, motion, homes, address)
            for register in homes.keys() - found.rules.keys():
                if register in self._kept or register == self._return:
                    found.rules[register] = self._home(found, motion, *homes[register])
        except (UntoldError, IndexError, ImageError):
            return stopped(self._sp, self._return)
        return found.done()

    def _move_cfa(self, found: Building, motion: Motion, homes: Homes, address: int) -> None:
        if found.register < 0:
            found.define_by(self._expression(found.expression, motion, homes, address))
        elif found.register == self._sp:
            found.define(found.register, found.offset + motion.depth)
        elif found.register in homes:
            found.define_by(self._value(found.register, found.offset, motion, homes))

    def _home(self, found: Building, motion: Motion, register: int | None, place: int | None) -> Rule:
        if register is not None:
            return How.MOVED, register, b""
        if place is None:
            return How.LOST, 0, b""
        if found.register == self._sp:
            return How.SAVED, place - found.offset, b""
        return How.AT, 0, based(self._sp, place)

    def _rule(self, rule: Rule, motion: Motion, homes: Homes, address: int) -> Rule:
        how, number, expression = rule
        if how in (How.AT, How.GIVEN):
            return how, number, self._expression(expression, motion, homes, address)
        if how is How.MOVED and number == self._sp and motion.depth:
            return How.GIVEN, 0, based(self._sp, motion.depth)
        if how is How.MOVED and number in homes:
            return How.GIVEN, 0, self._value(number, 0, motion, homes)
        return rule

    def _value(self, register: int, offset: int, motion: Motion, homes: Homes) -> bytes:
        """An expression for what a register had, plus an offset."""
        if register == self._sp:
            return based(register, offset + motion.depth)
        if register not in homes:
            return based(register, offset)
        other, place = homes[register]
        if other is not None:
            return based(other, offset)
        if place is None:
            raise UntoldError
        more = bytes((CONSTS,)) + signed(offset) + bytes((PLUS,)) if offset else b""
        return based(self._sp, place) + bytes((DEREF,)) + more

    def _expression(self, code: bytes, motion: Motion, homes: Homes, address: int) -> bytes:
        """An expression with other bases; branches in it would lead elsewhere."""
        parts, at, has_jump = list[bytes](), 0, False
        while at < len(code):
            opcode, start = code[at], at
            if BREG <= opcode < BREG + 32 or opcode == BREGX:
                register, at = (opcode - BREG, at + 1) if opcode != BREGX else leb(code, at + 1)
                offset, at = signed_leb(code, at)
                parts.append(self._base(register, offset, code[at:], motion, homes, address))
                continue
            has_jump |= opcode in (0x28, 0x2F)
            at = _after(code, at)
            parts.append(code[start:at])
        found = b"".join(parts)
        if has_jump and found != code:
            raise UntoldError
        return found

    def _base(self, register: int, offset: int, rest: bytes, motion: Motion, homes: Homes, address: int) -> bytes:
        if register != self._pc:
            return self._value(register, offset, motion, homes)
        # Linkers describe a PLT by the lowest bits of the program counter, which the image's place does not change.
        if len(rest) < 2 or rest[0] not in _LITERAL or rest[1] != _AND:
            raise UntoldError
        return bytes((CONSTS,)) + signed((address + offset) & 31)


def _after(code: bytes, at: int) -> int:
    """Where the next operation begins."""
    operands = _OPERANDS.get(code[at])
    if operands is None:
        raise UntoldError
    at += 1
    if operands in _READERS:
        return _READERS[operands](code, at)[1]
    return at + int(operands or 0)


_READERS: Final[Mapping[str, Callable[[bytes, int], tuple[int, int]]]] = {"u": leb, "s": signed_leb}
