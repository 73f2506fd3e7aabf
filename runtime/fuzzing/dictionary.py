"""An image and a function -> words that its inputs may have: constants that its code compares with, and texts.

Constants are those in the instructions of the function and of what it calls, in both byte orders, since formats of
networks and device trees are big-endian. Texts are those of the image's data; of very many, some.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kinst.rewriter.disassemble import disassemble

if TYPE_CHECKING:
    from kinst.rewriter.rewriting import Opened

_DEEPEST: Final = 3  # calls in calls
_MOST_FUNCTIONS: Final = 200
_MOST_TEXTS: Final = 400
_NUMBER: Final = re.compile(r"(?<![\w.])[#$]?(-?0x[0-9a-f]+|-?\d+)\b")
_TEXT: Final = re.compile(rb"(?<![\x20-\x7e])[\x20-\x7e]{3,16}(?=\0)")
_REGISTER: Final = re.compile(r"\b[a-z]\w*\d\b")
_HALF: Final = 0xFFFF_FFFF
_WORD: Final = (1 << 64) - 1
_PLACE: Final = re.compile(r"[\[(]")  # numbers in operands in memory are offsets


def words_of(opened: "Opened", address: int) -> tuple[list[bytes], list[bytes]]:
    """Constants and texts, each once, in the same order each time. `address`: the function's link address."""
    found = dict.fromkeys(word for value in _constants(opened, address) for word in _encoded(value))
    return list(found), _texts(opened)


def _encoded(value: int) -> Iterator[bytes]:
    if value <= 0xFF:
        yield bytes([value])
        return
    size = next(size for size in (2, 4, 8) if value < 1 << 8 * size)
    yield value.to_bytes(size, "little")
    yield value.to_bytes(size, "big")


def _constants(opened: "Opened", address: int) -> list[int]:
    """What numbers are in the code, but for addresses of functions, whose code is looked at in turn."""
    found: dict[int, None] = {}
    pending, seen = [(address, 0)], {address}
    while pending and len(seen) <= _MOST_FUNCTIONS:
        at, depth = pending.pop(0)
        for value in _numbers(_lines(opened, at)):
            if not _is_inside_function(opened, value):
                found[value] = None
            elif depth < _DEEPEST and value not in seen and _is_function(opened, value):
                seen.add(value)
                pending.append((value, depth + 1))
    return list(found)


def _lines(opened: "Opened", address: int) -> Iterator[str]:
    functions = opened.program.functions
    row = functions.row_at(address)
    if row is None:
        return
    size = int(functions.size[row])
    code = opened.image.read(address, size)
    yield from (line.text for line in disassemble(opened.image.facts, code, address))


def _numbers(lines: Iterator[str]) -> Iterator[int]:
    """The numbers in operands, and those that two instructions put together in a register."""
    parts: dict[str, int] = {}  # what a register holds of one
    for text in lines:
        mnemonic, _, operands = text.partition(" ")
        values = [int(one, 0) for one in _NUMBER.findall(_PLACE.split(operands, maxsplit=1)[0])]
        yield from (value & _HALF if value < 0 else value for value in values if value > 1 or value < 0)
        registers = _REGISTER.findall(operands)
        if not values or not registers:
            continue
        whole = _together(mnemonic, values, parts.get(registers[-1], 0))
        parts[registers[0]] = whole
        yield from (one for one in {whole, whole & _HALF} if one > 1)


def _together(mnemonic: str, values: Sequence[int], before: int) -> int:
    """What is in a register after an instruction: arm64's movz and movk, riscv64's lui and addi."""
    match mnemonic:
        case "movk":
            shift = values[1] if len(values) > 1 else 0
            return before & ~(0xFFFF << shift) & _WORD | values[0] << shift & _WORD
        case "lui" | "c.lui":
            return values[0] << 12 & _WORD
        case "addi" | "addiw" | "c.addi" | "c.addiw":
            return before + values[0] & _WORD
        case _:
            return values[0] & _WORD


def _is_inside_function(opened: "Opened", address: int) -> bool:
    return address <= _WORD and opened.program.functions.row_at(address) is not None


def _is_function(opened: "Opened", address: int) -> bool:
    functions = opened.program.functions
    row = functions.row_at(address)
    return row is not None and int(functions.address[row]) == address


def _texts(opened: "Opened") -> list[bytes]:
    image = opened.image
    texts = dict.fromkeys(
        text
        for one in image.segments
        if one.file_size
        for text in _TEXT.findall(image.data[one.offset : one.offset + one.file_size].data)
    )
    step = -(-len(texts) // _MOST_TEXTS) or 1
    return list(texts)[::step]
