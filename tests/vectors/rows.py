"""Tables of instruction vectors, as text: ``code | assembly | flags | effect``, grouped by what they are.

The bytes are GNU as's, the effects Unicorn's (`STATE` at the site `PC`, recorded once), the classification ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from kinst.targets.instruction import Flow, Reason, Verdict

PC = 0x10_0000
MEMORY_SIZE = 0x40_0000


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction. `effect` maps what changes to its value: a register, ``v3``, or ``[address]`` of 8 bytes."""

    code: bytes
    assembly: str
    kind: IntEnum
    verdict: Verdict
    flow: Flow
    reason: Reason
    flags: int
    effect: dict[str, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Instructions with the same answer."""

    kind: IntEnum
    verdict: Verdict
    flow: Flow
    reason: Reason
    table: str

    def __iter__(self) -> Iterator[Row]:
        for line in filter(None, map(str.strip, self.table.splitlines())):
            code, assembly, flags, effect = (cell.strip() for cell in line.split("|"))
            changes = {name: int(value, 16) for name, value in (part.split("=") for part in effect.split())}
            yield Row(
                bytes.fromhex(code), assembly, self.kind, self.verdict, self.flow, self.reason, int(flags or 0), changes
            )


def emulate(kind: IntEnum, flow: Flow, table: str) -> Group:
    return Group(kind, Verdict.EMULATE, flow, Reason.NONE, table)


def copy(kind: IntEnum, table: str) -> Group:
    return Group(kind, Verdict.COPY, Flow.NEXT, Reason.NONE, table)


def refuse(kind: IntEnum, flow: Flow, reason: Reason, table: str) -> Group:
    return Group(kind, Verdict.REFUSE, flow, reason, table)


def memory_byte(address: int) -> int:
    """What the guest's memory held when the effects were recorded."""
    return (address * 37 + (address >> 8) * 11 + 5) & 0xFF
