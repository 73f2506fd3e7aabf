"""Assembly text of a task -> parts of a trampoline.

The text is ordinary assembly of the machine, apart from two kinds of lines, whose values differ from site to site:

    la REGISTER, NAME        an address, relative to the instruction
    number REGISTER, NAME    a number below 2**31
"""

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Final

from kinst.rewriter.standalone.code.parts import Fixup, Parts, joined
from kinst.targets.values import dataclass

_ADDRESS: Final = "la"
_NUMBER: Final = "number"


@dataclass(frozen=True, slots=True)
class Assembly:
    """One machine's. `encode` assembles lines; `address` and `number` give the fixup for ``la`` and ``number``, by
    register and name."""

    encode: Callable[[str], bytes]
    address: Callable[[int, str], Fixup]
    number: Callable[[int, str], Fixup]
    registers: Mapping[str, int]


def assembled(assembly: Assembly, text: str) -> Parts:
    """The parts of a text."""
    lines = filter(None, map(str.strip, text.splitlines()))
    return joined(*(_parts(assembly, [*some]) for _, some in groupby(lines, _is_fixup)))


def _is_fixup(line: str) -> bool:
    return line.startswith((f"{_ADDRESS} ", f"{_NUMBER} "))


def _parts(assembly: Assembly, lines: list[str]) -> Parts:
    """Lines that are all fixups, or all none."""
    if _is_fixup(lines[0]):
        return tuple(_fixup(assembly, line) for line in lines)
    return (assembly.encode("\n".join(lines)),)


def _fixup(assembly: Assembly, line: str) -> Fixup:
    what, _, operands = line.partition(" ")
    register, name = operands.split(", ")
    make = assembly.address if what == _ADDRESS else assembly.number
    return make(assembly.registers[register], name)
