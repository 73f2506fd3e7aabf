"""Bytes of code -> sizes of instructions in bulk (amd64), and lines of text (every machine). All that uses capstone.

Sizes come from capstone's C function cs_disasm, which is called for a few thousand instructions at a time. Its array of
cs_insn is read as a numpy structured array: 3 million instructions a second, against 0.3 million with a Python object
for each. capstone is imported when something is decoded: a run of a patched arm64 or riscv64 image never needs it.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    import capstone

# The columns we read of capstone 5's cs_insn: unsigned id; uint64_t address; uint16_t size; uint8_t bytes[24];
# char mnemonic[32]; char op_str[160]; cs_detail *detail. `_bulk_functions` proves the numbers.
_CS_INSN_OFFSETS = {"address": 8, "size": 16}
_CS_INSN = np.dtype(
    {
        "names": list(_CS_INSN_OFFSETS),
        "formats": ["<u8", "<u2"],
        "offsets": list(_CS_INSN_OFFSETS.values()),
        "itemsize": 248,
    }
)
_BYTES: Final = ".byte"  # the mnemonic of what does not decode
_BATCH = 1 << 13  # instructions a call: 2 MB of cs_insn, which stays in the cache


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction as text: mnemonic, a blank, operands. One that capstone does not know reads as the assembler
    takes it: ``.insn`` (riscv64) or ``.inst`` (arm64) and its word, ``.byte`` where there are no words."""

    address: int
    size: int
    text: str


def disassemble(facts: ArchFacts, code: bytes, address: int) -> list[Line]:
    """The instructions of `code`, which is at `address`. Every byte belongs to exactly one line."""
    lines = _engine(facts.name).disasm_lite(code, address)
    texts = (
        (at, size, f"{mnemonic} {operands}" if mnemonic != _BYTES else _undecoded(facts, code[at - address :][:size]))
        for at, size, mnemonic, operands in lines
    )
    return [Line(at, size, text.rstrip().replace("\t", " ")) for at, size, text in texts]


def is_decoded(facts: ArchFacts, text: str) -> bool:
    """Whether the text of a line is that of an instruction that capstone knows."""
    return text.partition(" ")[0] not in {_BYTES, facts.word_directive}


def differing(before: str, code_before: bytes, after: str, code_after: bytes) -> tuple[str, str]:
    """The texts of what stood at a place and of what stands there now, which differ if the bytes do: capstone prints
    some instructions alike that have several encodings."""
    if before != after or code_before == code_after:
        return before, after
    return f"{before} ({code_before.hex(' ')})", f"{after} ({code_after.hex(' ')})"


def _undecoded(facts: ArchFacts, code: bytes) -> str:
    """What capstone skipped: an instruction's word, or bytes that are no instruction."""
    if facts.word_directive is not None and len(code) == _word_size(facts, code):
        return f"{facts.word_directive} {int.from_bytes(code, 'little'):#0{2 + 2 * len(code)}x}"
    return f"{_BYTES} {', '.join(f'{byte:#04x}' for byte in code)}"


def _word_size(facts: ArchFacts, code: bytes) -> int:
    """The size of the instruction that begins with these bytes, whether or not capstone knows it."""
    word = int.from_bytes(code[:8], "little")
    return next(size for pattern, size in facts.linux.lengths if word & pattern.mask == pattern.value)


class Sweep:
    """Sizes of amd64 instructions in bulk: cs_disasm with its handle, its output buffer and the address of the code."""

    def __init__(self, code: NDArray[np.uint8], bits: int = 64) -> None:
        if not code.flags.c_contiguous:
            raise ValueError("the code must be contiguous: capstone reads it by address")
        self._code = code  # keeps the memory alive
        self._disassemble, self._free = _bulk_functions()
        self._handle = _amd64_engine(bits).csh.value
        self._base = code.ctypes.data
        self._array = ctypes.c_void_p()
        self._array_address = ctypes.addressof(self._array)

    def sizes(self, start: int, end: int) -> NDArray[np.uint8]:
        """The sizes of the instructions in bytes [start, end) of the code, up to the first that does not decode."""
        part = self._call(start, end)
        parts = [part]
        while len(part) == _BATCH:
            start += int(part.sum(dtype=np.int64))
            part = self._call(start, end)
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _call(self, start: int, end: int) -> NDArray[np.uint8]:
        count = self._disassemble(self._handle, self._base + start, end - start, start, _BATCH, self._array_address)
        if count == 0:
            return np.empty(0, np.uint8)
        memory = (ctypes.c_char * (count * _CS_INSN.itemsize)).from_address(self._array.value or 0)
        sizes = np.frombuffer(memory, _CS_INSN)["size"].astype(np.uint8)
        self._free(self._array, count)
        return sizes


@cache
def _amd64_engine(bits: int) -> "capstone.Cs":
    import capstone

    return capstone.Cs(capstone.CS_ARCH_X86, {32: capstone.CS_MODE_32, 64: capstone.CS_MODE_64}[bits])


@cache
def _engine(machine: str) -> "capstone.Cs":
    import capstone

    facts = arch_by_name(machine)
    mode = facts.capstone
    modes = [getattr(capstone, name) for name in mode.modes]
    engine = capstone.Cs(getattr(capstone, mode.arch), sum(modes))
    engine.syntax = getattr(capstone, mode.syntax or "CS_OPT_SYNTAX_DEFAULT")
    engine.skipdata = True
    if facts.word_directive is not None:
        engine.skipdata_setup = (_BYTES, _whole_words(facts), None)
    return engine


def _whole_words(facts: ArchFacts) -> Callable[[Any, int, int, object], int]:
    """How many bytes capstone skips of what it does not know. By itself it goes on in the middle of a word if there are
    shorter instructions (riscv64), and takes the rest for others."""

    def size(code: Any, length: int, offset: int, _data: object) -> int:
        return min(_word_size(facts, code[offset : min(length, offset + 8)]), length - offset)

    return size


@cache
def _bulk_functions() -> tuple[Any, Any]:
    """cs_disasm and cs_free of capstone's library, as ctypes calls them.

    If a version of capstone lays out cs_insn differently, this fails clearly, and not with wrong sizes.
    """
    import capstone

    layout = capstone._cs_insn
    seen = (ctypes.sizeof(layout), layout.address.offset, layout.size.offset, layout.size.size)
    if seen != (_CS_INSN.itemsize, *_CS_INSN_OFFSETS.values(), 2):
        raise RuntimeError(f"capstone {capstone.__version__}: cs_insn is laid out as {seen}, not as in capstone 5")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    disassemble_ = ctypes.CFUNCTYPE(size, pointer, pointer, size, ctypes.c_uint64, size, pointer)
    return disassemble_(("cs_disasm", capstone._cs)), ctypes.CFUNCTYPE(None, pointer, size)(("cs_free", capstone._cs))
