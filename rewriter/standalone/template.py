"""Assembly text of a task -> code at an address.

A text is as readers of the machine's assembly know it, but for lines ``la REGISTER, PLACE``: the address of a place, as
far away as it is from there. All else is the same at every address, and is assembled once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

_ADDRESS: Final = "la "


@dataclass(frozen=True, slots=True)
class Assembly:
    """One machine's: `encode` gives the bytes of lines, `address_of` those of ``la`` by register, address and place."""

    encode: Callable[[str], bytes]
    address_of: Callable[[int, int, int], bytes]
    registers: Mapping[str, int]


def assembled(assembly: Assembly, text: str, at: int, places: Mapping[str, int]) -> bytes:
    """The code at an address.

    Raises:
        ImmovableError: one of the places is out of reach.
    """
    code = b""
    for register, place, fixed in _parts(assembly.encode, text):
        if place:
            code += assembly.address_of(assembly.registers[register], at + len(code), places[place])
        code += fixed
    return code


@cache
def _parts(encode: Callable[[str], bytes], text: str) -> Sequence[tuple[str, str, bytes]]:
    """Register and place of each ``la``, none before the first one; and the code behind it."""
    parts: list[tuple[str, str, list[str]]] = [("", "", [])]
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(_ADDRESS):
            register, place = line.removeprefix(_ADDRESS).split(", ")
            parts.append((register, place, []))
        else:
            parts[-1][2].append(line)
    return [(register, place, encode("\n".join(lines)) if lines else b"") for register, place, lines in parts]
