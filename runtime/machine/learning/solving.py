"""A loop that no single bit leaves -> the values that its comparisons ask for.

For each bit of the register: in which general registers does it show, instruction by instruction, on the way from the
read back to it? That tells which bits a comparison sees, without knowing any instruction. If they are few, all their
values are tried. If they are many, what they do is solved for the values that stand beside them: other registers, and
the numbers in the instructions.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from kinst.runtime.machine.learning.assumptions import flipped
from kinst.runtime.machine.learning.loops import Loop
from kinst.targets.machines.registers import Rule

_STEPS: Final = 160  # instructions of an iteration that are looked at
_FEW: Final = 10  # bits whose values are all tried
_MOST: Final = 4000  # values that are tried
_WORD: Final = (1 << 64) - 1

Constants = Callable[[int], Iterable[int]]  # the numbers in the instruction at a PC


def asked_for(loop: Loop, rule: Rule, width: int, constants: Constants) -> Iterator[int]:
    """Bits to invert in what the register gives, those first that are likelier.

    Args:
        loop: that reads it.
        rule: by which it is read.
        width: its bits.
        constants: what instructions compare with.
    """
    plain = loop.trace(rule, _STEPS)
    traces = [loop.trace(flipped(rule, loop.given, 1 << bit), _STEPS) for bit in range(width)]
    seen: set[int] = set()
    for flips in _all_flips(plain, traces, constants):
        if flips not in seen and len(seen) < _MOST:
            seen.add(flips)
            yield flips


def _all_flips(plain: "_Trace", traces: "list[_Trace]", constants: Constants) -> Iterator[int]:
    effects = _effects(plain, traces)
    fields = sorted({frozenset(effect.bits) for effect in effects}, key=len)
    for field in fields:
        if len(field) <= _FEW:
            for count in range(2, len(field) + 1):
                yield from (sum(1 << bit for bit in chosen) for chosen in combinations(sorted(field), count))
    for effect in effects:
        for wanted in effect.wanted(constants):
            flips = _solved(effect.value ^ wanted, effect.bits)
            if flips:
                yield flips


_Trace = list[tuple[int, tuple[int, ...]]]


@dataclass(slots=True)
class _Effect:
    """What a general register has before some instructions, and what each bit does to that."""

    value: int
    bits: dict[int, int]  # bit of what was read -> the bits of the register that it inverts
    at: int  # the last of those instructions
    places: list[int]  # PCs
    others: set[int]  # what other registers have

    def wanted(self, constants: Constants) -> Iterator[int]:
        """The values that it may be compared with."""
        numbers = [number for pc in self.places for number in constants(pc)]
        for number in dict.fromkeys([*numbers, *sorted(self.others), 0]):
            yield from (number & _WORD, number + 1 & _WORD, number - 1 & _WORD)


def _effects(plain: _Trace, traces: list[_Trace]) -> list[_Effect]:
    """All that the bits do, that of fewer bits first: the others are on the way to it."""
    found: dict[tuple[int, tuple[tuple[int, int], ...]], _Effect] = {}
    for at, (pc, registers) in enumerate(plain):
        same = [(bit, trace[at][1]) for bit, trace in enumerate(traces) if len(trace) > at and trace[at][0] == pc]
        for number, value in enumerate(registers):
            bits = {bit: other[number] ^ value for bit, other in same if other[number] != value}
            if bits and number != len(registers) - 1:
                effect = found.setdefault((value, tuple(bits.items())), _Effect(value, bits, at, [], set()))
                effect.at = at
                effect.places.append(pc)
                effect.others.update(registers)
    return sorted(found.values(), key=lambda effect: (len(effect.bits), -effect.at))


def _solved(difference: int, effects: dict[int, int]) -> int:
    """The bits whose effects, by exclusive or, make a difference; 0: none do. Exact for what masks, shifts and inverts;
    else a guess, which is tried."""
    rows: dict[int, tuple[int, int]] = {}  # highest bit -> effect and the bits that make it
    for bit, effect in effects.items():
        made = 1 << bit
        while effect and effect.bit_length() in rows:
            other, by = rows[effect.bit_length()]
            effect, made = effect ^ other, made ^ by
        if effect:
            rows[effect.bit_length()] = effect, made
    chosen = 0
    while difference:
        row = rows.get(difference.bit_length())
        if row is None:
            return 0
        difference, chosen = difference ^ row[0], chosen ^ row[1]
    return chosen
