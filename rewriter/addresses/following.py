"""Instructions -> the addresses of code that they put into registers, and what is done with each afterwards.

A register is followed where control certainly goes: through jumps and into calls, past branches that are not taken,
until it is overwritten. What is not seen remains unknown: this is evidence, not proof.
"""

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kinst.rewriter.liveness.effects import EVERYTHING, Masks, effector
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.columns import is_one_of
from kinst.targets.functions.address_uses import AddressUses, Slots, Use, Wanted, joined_uses
from kinst.targets.instruction import Flow, Instructions
from kinst.targets.values import dataclass

_STEPS: Final = 48  # instructions for which a register is followed
_MARGIN: Final = 32  # spare bytes, as `Effector.effects` and `amd64_decode` ask for
_ENDS: Final = (Flow.RETURN, Flow.STOP, Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)


@dataclass(frozen=True, slots=True)
class Made:
    """Columns: the row after which a register holds an address of code."""

    row: NDArray[np.intp]
    register: NDArray[np.int8]
    address: NDArray[np.uint64]

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Made":
        """Some rows."""
        return Made(self.row[rows], self.register[rows], self.address[rows])


@dataclass(frozen=True, slots=True)
class Operands:
    """What instructions do with registers, by number; -1: with none. `base` + `displacement` is where memory is
    accessed (less an index), `stored` is stored as it is, `target` is where control goes."""

    base: NDArray[np.int8]
    displacement: NDArray[np.int64]
    stored: NDArray[np.int8]
    target: NDArray[np.int8]


class Registers(Protocol):
    """One machine's answers; `code` has `_MARGIN` spare bytes at its end."""

    @property
    def facts(self) -> ArchFacts:
        """The machine."""
        ...

    def made(self, code: NDArray[np.uint8], address: int, found: Instructions, slots: Slots, wanted: Wanted) -> Made:
        """The registers that hold `wanted` addresses."""
        ...

    def read(self, found: Instructions, wanted: Wanted) -> Made:
        """What instructions read at addresses that the encoding gives, whatever is in registers."""
        ...

    def operands(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Operands:
        """Of the instructions at some offsets."""
        ...

    def may_write(self, code: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Masks:
        """The registers, as bits, that instructions may write of which the machine's `Effector` knows nothing: above
        all vector instructions, which stand between an address and its use wherever tables lie among code."""
        ...


def uses(
    machine: Registers, code: NDArray[np.uint8], address: int, found: Instructions, slots: Slots, wanted: Wanted
) -> AddressUses:
    """See `kinst.targets.functions.address_uses.UsesOf`."""
    if not len(found):
        return joined_uses([])
    padded = np.append(code, np.zeros(_MARGIN, np.uint8))
    direct = machine.read(found, wanted)
    made = machine.made(padded, address, found, slots, wanted)
    parts = [_as_uses(direct, Use.READ)] if len(direct.row) else []
    return joined_uses([*parts, *_followed(machine, padded, address, found, made)] if len(made.row) else parts)


def _as_uses(made: Made, use: Use) -> AddressUses:
    return AddressUses(made.address, np.full(len(made.row), use, np.uint8), made.row)


def _followed(
    machine: Registers, code: NDArray[np.uint8], address: int, found: Instructions, made: Made
) -> list[AddressUses]:
    parts = []
    effects = effector(machine.facts)
    made, row = _going_on(found, made, made.row)
    for _ in range(_STEPS):
        if not len(row):
            break
        offsets = (found.address[row] - np.uint64(address)).view(np.int64)
        operands = machine.operands(code, offsets)
        parts += _seen(operands, made)
        does = effects.effects(code, offsets, found.size[row])
        unknown = np.flatnonzero((does.reads == EVERYTHING) & (found.flow[row] == Flow.NEXT))
        does.writes[unknown] |= machine.may_write(code, offsets[unknown])
        gone = (does.writes >> made.register.astype(np.uint32) & np.uint32(1)).astype(np.bool_)
        kept = ~gone & ~is_one_of(found.flow[row], _ENDS)
        made, row = _going_on(found, made.take(kept), row[kept])
    return parts


def _going_on(found: Instructions, made: Made, row: NDArray[np.intp]) -> tuple[Made, NDArray[np.intp]]:
    """The registers that are followed further, and the rows, ascending, to which control goes from `row`."""
    is_away = is_one_of(found.flow[row], (Flow.JUMP, Flow.CALL))
    goal = np.where(is_away, found.target[row], found.address[row] + found.size[row])
    place = np.where(is_away, np.searchsorted(found.address, goal), row + 1)
    inside = place < len(found)
    inside[inside] = found.address[place[inside]] == goal[inside]
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(place[rows], kind="stable")]
    return made.take(rows), place[rows]


def _seen(operands: Operands, made: Made) -> list[AddressUses]:
    """What an instruction does with each register that is followed."""
    is_read = operands.base == made.register
    read = made.take(is_read)
    place = Made(read.row, read.register, read.address + operands.displacement[is_read].view(np.uint64))
    return [
        _as_uses(place, Use.READ),
        _as_uses(made.take(operands.target == made.register), Use.CALLED),
        _as_uses(made.take(operands.stored == made.register), Use.KEPT),
    ]


def none_of(count: int) -> NDArray[np.int8]:
    """A column of no registers."""
    return np.full(count, -1, np.int8)


def joined_made(parts: list[Made]) -> Made:
    """All of several, of which there must be one."""
    return Made(*(np.concatenate([getattr(part, name) for part in parts]) for name in Made.__slots__))


def held(
    slots: Slots, rows: NDArray[np.intp], address: NDArray[np.uint64], wanted: Wanted
) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """The rows whose addresses are slots that hold a wanted address, and what they hold."""
    if not len(slots.address):
        return rows[:0], address[:0]
    place = np.minimum(np.searchsorted(slots.address, address), len(slots.address) - 1)
    value = slots.value[place]
    chosen = (slots.address[place] == address) & wanted(value)
    return rows[chosen], value[chosen]
