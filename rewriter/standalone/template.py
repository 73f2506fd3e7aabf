"""Assembly text of a task -> code at an address.

A text is as readers of the machine's assembly know it, but for two kinds of lines, which differ from site to site:

    la REGISTER, NAME        an address, by how far away it is from there
    number REGISTER, NAME    any number of 64 bits

All else is the same everywhere, and is assembled once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_ADDRESS: Final = "la"
_NUMBER: Final = "number"
SHAPES: Final = 1 << 13  # texts that are remembered: a kernel with every instruction probed has thousands


@dataclass(frozen=True, slots=True)
class Assembly:
    """One machine's. `encode` gives the bytes of lines; `address_of` those of ``la`` by register, address and value,
    `number` those of ``number`` by register and value."""

    encode: Callable[[str], bytes]
    address_of: Callable[[int, int, int], bytes]
    number: Callable[[int, int], bytes]
    registers: Mapping[str, int]


def assembled(assembly: Assembly, text: str, at: int, values: Mapping[str, int]) -> bytes:
    """The code at an address.

    Raises:
        ImmovableError: one of the addresses is out of reach.
    """
    code = b""
    for what, register, name, fixed in _parts(assembly.encode, text):
        if what == _ADDRESS:
            code += assembly.address_of(assembly.registers[register], at + len(code), values[name])
        elif what == _NUMBER:
            code += assembly.number(assembly.registers[register], values[name])
        code += fixed
    return code


@lru_cache(SHAPES)
def _parts(encode: Callable[[str], bytes], text: str) -> Sequence[tuple[str, str, str, bytes]]:
    """Each line that differs, as mnemonic, register and name, none before the first one; and the code behind it."""
    lines: list[tuple[str, str, str, list[str]]] = [("", "", "", [])]
    for line in filter(None, map(str.strip, text.splitlines())):
        what, _, operands = line.partition(" ")
        if what in (_ADDRESS, _NUMBER):
            register, name = operands.split(", ")
            lines.append((what, register, name, []))
        else:
            lines[-1][3].append(line)
    return [(what, register, name, encode("\n".join(rest)) if rest else b"") for what, register, name, rest in lines]
