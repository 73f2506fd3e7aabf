"""Operands of static probes, in assembler syntax -> functions that read their values when the probe fires.

amd64     %edi   $5   -16(%rbp)   8(%rax,%rbx,4)   symbol+8(%rip)   %gs:symbol(%rip)
arm64     w0   5   [sp, 16]   [x0, x1, lsl 3]   [x0, w1, sxtw 2]   [x0, #:lo12:symbol]
riscv64   a0   5   -24(s0)   %lo(symbol)(a5)
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.static_probes import take_apart
from kinst.targets.values import dataclass

Value = Callable[[Firing], int]
FindSymbol = Callable[[str], int | None]  # name -> run-time address; None: no such symbol
_MASK: Final = (1 << 64) - 1
_NUMBER: Final = re.compile(r"[$#]?([+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}))")
_OCTAL: Final = re.compile(r"[0-7]+")
_SYMBOL: Final = re.compile(r"([A-Za-z_.][\w.$]*)\s*(?:([+-])\s*(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}))?", re.ASCII)
_SEGMENT: Final = re.compile(r"%(fs|gs):((?!%[fg]s:).+)")
_DISPLACED: Final = re.compile(r"([^()]*?(?:%lo\([^()]*\))?)\(([^()]*)\)")  # displacement(base,index,scale)
_LOW: Final = re.compile(r"%lo\(([^()]*)\)")
_LOW_PART: Final = re.compile(r"#?:lo12:(.*)")
_BRACKETS: Final = re.compile(r"\[([^\[\]]*)\]")
_EXTENDED: Final = re.compile(r"(lsl|sxtw|uxtw|sxtx|uxtx)(?:\s+#?([0-4]))?")
_ZERO: Final = frozenset({"xzr", "wzr"})


class _Unknown(Exception):
    """The operand has a syntax that is not known here."""


class _NoSymbol(Exception):
    """The operand names what the file has no symbol for; its text is the name."""


@dataclass(frozen=True, slots=True)
class Operands:
    """Compiles the operands of one image's static probes."""

    arch: ArchFacts
    find: FindSymbol

    def compile(self, texts: Sequence[str]) -> Callable[[Firing, int], int]:
        """A function that gives arg0, arg1, ... of a place, and 0 beyond the last. An operand of unknown syntax
        faults when it is read."""
        values = [self.value(text) for text in texts]

        def argument(firing: Firing, index: int) -> int:
            return values[index](firing) if index < len(values) else 0

        return argument

    def value(self, text: str) -> Value:
        """A function that reads one operand as a 64-bit word; a signed operand is sign-extended."""
        found = take_apart(text)
        try:
            if found is None:
                raise _Unknown
            size, is_signed, place = found
            return _sized(self._place(place, size), size, is_signed=is_signed)
        except _NoSymbol as error:
            why = "a label that only the assembler knew" if str(error).startswith(".L") else "as the symbol table says"
            return _faulting(f"operand {text!r} of a static probe: the file has no symbol {error}, {why}")
        except _Unknown:
            return _faulting(f"operand {text!r} of a static probe: not an operand syntax of {self.arch.name}")

    def _place(self, text: str, size: int) -> Value:
        number = _NUMBER.fullmatch(text)
        if number is not None:
            return _constant(_integer(number[1]))
        if text.startswith("$"):
            return _constant(self._symbol(text[1:]))
        register = self._register(text)
        return register if register is not None else _memory(self._address(text), size)

    def _register(self, text: str) -> Value | None:
        name = text.removeprefix("%").lower()
        if name in _ZERO:
            return _constant(0)
        index = self.arch.operand_registers.get(name)
        return None if index is None else (lambda firing: firing.regs[index])

    def _known_register(self, text: str) -> Value:
        register = self._register(text)
        if register is None:
            raise _Unknown
        return register

    # -- addresses ----------------------------------------------------------------------------------------------------

    def _address(self, text: str) -> Value:
        segment = _SEGMENT.fullmatch(text)
        if segment is not None and f"{segment[1]}_base" in self.arch.registers:
            base = self.arch.registers.index(f"{segment[1]}_base")
            inner = self._address(segment[2])
            return lambda firing: firing.regs[base] + inner(firing)
        brackets = _BRACKETS.fullmatch(text)
        if brackets is not None:
            return self._in_brackets([part.strip() for part in brackets[1].split(",")])
        displaced = _DISPLACED.fullmatch(text)
        if displaced is not None:
            return self._displaced(displaced[1].strip(), [part.strip() for part in displaced[2].split(",")])
        if not text:
            raise _Unknown
        return _constant(self._displacement(text))

    def _displaced(self, displacement: str, parts: list[str]) -> Value:
        offset = self._displacement(displacement)
        if parts == ["%rip"]:  # not the symbol plus rip: the assembler encodes the distance to the symbol
            return _constant(offset)
        base = self._known_register(parts[0]) if parts[0] else _constant(0)
        if len(parts) == 1:
            return lambda firing: base(firing) + offset
        if len(parts) > 3 or (len(parts) == 3 and parts[2] not in ("1", "2", "4", "8")):
            raise _Unknown
        index, scale = self._known_register(parts[1]), int(parts[2]) if len(parts) == 3 else 1
        return lambda firing: base(firing) + index(firing) * scale + offset

    def _in_brackets(self, parts: list[str]) -> Value:
        base = self._known_register(parts[0])
        if len(parts) == 1:
            return base
        number = _NUMBER.fullmatch(parts[1])
        if number is not None and len(parts) == 2:
            offset = _integer(number[1])
            return lambda firing: base(firing) + offset
        low = _LOW_PART.fullmatch(parts[1])
        if low is not None and len(parts) == 2:  # the base is the page (adrp); AAELF64: R_AARCH64_LDST*_ABS_LO12_NC
            offset = self._symbol(low[1]) & 0xFFF
            return lambda firing: base(firing) + offset
        index = self._known_register(parts[1])
        shift, kind = 0, "uxtw" if parts[1].startswith("w") else "lsl"
        if len(parts) > 2:
            extended = _EXTENDED.fullmatch(parts[2])
            if extended is None or len(parts) > 3:
                raise _Unknown
            kind, shift = extended[1], int(extended[2] or 0)
        extend = _EXTENSIONS[kind]
        return lambda firing: base(firing) + (extend(index(firing)) << shift)

    def _displacement(self, text: str) -> int:
        if not text:
            return 0
        number = _NUMBER.fullmatch(text)
        if number is not None:
            return _integer(number[1])
        low = _LOW.fullmatch(text)
        if low is not None:  # signed: %hi() in the base register was rounded to compensate (RISC-V psABI)
            return _signed(self._symbol(low[1]), 12)
        return self._symbol(text)

    def _symbol(self, text: str) -> int:
        found = _SYMBOL.fullmatch(text)
        address = None if found is None else self.find(found[1])
        if found is None:
            raise _Unknown
        if address is None:
            raise _NoSymbol(found[1])
        offset = _integer(found[3]) if found[3] else 0
        return address + (-offset if found[2] == "-" else offset)


def _integer(text: str) -> int:
    """A number as assemblers read it: octal with a leading zero."""
    digits = text.lstrip("+-")
    is_octal = digits[:1] == "0" and digits.isdigit()
    if is_octal and not _OCTAL.fullmatch(digits):
        raise _Unknown
    return int(text, 8 if is_octal else 0)


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - ((value >> bits - 1) << bits)


def _low_word(value: int) -> int:
    return value & 0xFFFF_FFFF


_EXTENSIONS: Final[dict[str, Callable[[int], int]]] = {
    "lsl": int,
    "uxtx": int,
    "sxtx": int,
    "uxtw": _low_word,
    "sxtw": lambda value: _signed(value, 32),
}


def _constant(value: int) -> Value:
    return lambda _firing: value


def _memory(address: Value, size: int) -> Value:
    def load(firing: Firing) -> int:
        place = address(firing) & _MASK
        try:
            return firing.frame.load(place, size)
        except PageFault:
            raise Fault(FaultKind.BADADDR, place) from None

    return load


def _sized(value: Value, size: int, *, is_signed: bool) -> Value:
    bits = 8 * size
    low = (1 << bits) - 1
    if not is_signed or bits == 64:
        return lambda firing: value(firing) & low
    return lambda firing: _signed(value(firing), bits) & _MASK


def _faulting(text: str) -> Value:
    def fault(_firing: Firing) -> int:
        raise Fault(FaultKind.ILLOP, 0, text)

    return fault
