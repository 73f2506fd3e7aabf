"""Assembly text of a patch -> its bytes at an address. Every instruction is read back: assemblers cannot be trusted.

keystone cuts immediates and distances that are too large (``mov al, 0x1234`` becomes ``mov al, 0x34``), may take ``10``
for 16, and resolves symbols to other places. So it gets numbers only, in hex, and each number of the text must be in
what capstone makes of the bytes. More: docs/facts/keystone.md.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from kinst.rewriter.disassemble import disassemble, is_decoded
from kinst.rewriter.naming.select import Names
from kinst.rewriter.patching import riscv64
from kinst.rewriter.patching.assembler import Assembler
from kinst.rewriter.patching.request import PatchRequest
from kinst.rewriter.program import Program
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.header import FileKind
from kinst.targets.elf.symbols import SHN_UNDEF
from kinst.targets.errors import PatchError, UsageError
from kinst.targets.values import dataclass

_TOKEN: Final = re.compile(r"%?[A-Za-z_.][\w.$@]*|[0-9][\w.]*|\s+|.")
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|0|[1-9][0-9]*")
_SHOWN: Final = re.compile(r"(?<![\w%.])-?(?:0x[0-9a-f]+|[0-9]+)")
_NAME: Final = re.compile(r"[A-Za-z_.]")
# keystone does not terminate on some text that begins with no word. A colon is a segment's: gs:[0x10], %gs:0x10.
_REFUSED: Final = re.compile(r"""["'=\\]|//|/\*|^[^A-Za-z]|^[\w.$]+:|(?<!\b[c-gsC-GS][sS]):|[^\x20-\x7e]""")
_WORDS: Final = frozenset(("byte", "word", "dword", "qword", "xmmword", "ptr", "offset", "short", "rip"))
_FEW: Final = 4  # candidates that a message lists
_SHIFT: Final = 1 << 16  # how far an image is moved to see whether an instruction depends on its address
_RIP: Final = 16  # a displacement to begin with


def assembled(program: Program, request: PatchRequest, address: int) -> bytes:
    """The bytes of a request's instructions.

    Raises:
        UsageError: the text does not assemble.
        PatchError: a name in it is none of the image, or the bytes are not what the text says.
    """
    code, names = b"", _Names(program)
    with _encoder(program.image.facts, request.assembly) as encoder:
        for text in filter(None, map(str.strip, request.assembly.split(";"))):
            code += _Instruction(names, text, address + len(code), encoder).code()
    if not code:
        raise UsageError("no instruction in it")
    return code


@contextmanager
def _encoder(facts: ArchFacts, text: str) -> Iterator["_Encoder"]:
    if facts.keystone is None:
        yield _Encoder(riscv64.encode, is_ours=True)
        return
    with Assembler(facts, is_plain="%" not in text and "$" not in text) as assembler:
        yield _Encoder(assembler.encode, is_ours=False)


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Makes bytes of an instruction at an address. Ours refuses what does not fit, and some of it takes two."""

    encode: Callable[[str, int], bytes]
    is_ours: bool


class _Names:
    """What a program's functions and symbols are called."""

    def __init__(self, program: Program) -> None:
        self.facts = program.image.facts
        is_movable = program.image.kind is FileKind.DYN or any(program.image.kept_relocations)
        self.moves = is_movable or len(program.relocated) > 0
        self._functions, self._symbols = program.functions, program.image.symbols
        self._names = Names(program.functions)

    def addresses(self, name: str) -> list[int]:
        """Where functions and symbols of that name are."""
        rows, others = np.unique(self._names.select_exact(name).rows), self._symbols.rows_named(name)
        others = others[self._symbols.section[others] != SHN_UNDEF]
        return sorted({*self._functions.address[rows].tolist(), *self._symbols.address[others].tolist()})


@dataclass(frozen=True, slots=True)
class _Term:
    """A number or name in an instruction's text: its tokens from `start` to before `end`, and its value."""

    start: int
    end: int
    value: int
    is_name: bool = False
    is_rip_relative: bool = False


class _Instruction:
    """One instruction of a patch."""

    def __init__(self, names: _Names, text: str, address: int, encoder: _Encoder) -> None:
        if _REFUSED.search(text):
            raise UsageError(f"{text!r}: instructions only, without labels, directives, comments and literals")
        if any(text.count(first) != text.count(last) for first, last in ("()", "[]", "{}")):
            raise UsageError(f"{text!r}: a bracket without its other half")  # of which keystone makes an operand
        self._symbols, self._text, self._address, self._encoder = names, text, address, encoder
        self._tokens = _TOKEN.findall(text)

    def code(self) -> bytes:
        """Its bytes, read back."""
        names = self._names()
        try:
            # Without names first: a symbol may be called like a register or a mnemonic's word, and then the machine's
            # meaning wins.
            plain = self._with({})
            if self._shows(plain, names):  # registers, and other words of the machine that symbols may be called by
                return plain
        except UsageError:
            if not names:
                raise
        values = {name: self._value(name) for name in names}
        code = self._with(values)
        # The same text at another address must give the same bytes, else an absolute address is in them.
        if self._symbols.moves and self._with(values, _SHIFT) != code:
            raise PatchError(
                f"{self._text!r}: holds an address, and this image can be loaded elsewhere: take it relative to the PC"
            )
        return code

    def _names(self) -> list[str]:
        """The words in it that are names of the image's symbols."""
        registers = self._symbols.facts.operand_registers
        words = dict.fromkeys(token for token in self._tokens[1:] if _NAME.match(token) and token != ".")
        known = [word for word in words if word.lower() not in registers and word.lower() not in _WORDS]
        return [word for word in known if self._symbols.addresses(word)]

    def _value(self, name: str) -> int:
        addresses = self._symbols.addresses(name)
        if len(addresses) > 1:
            few = ", ".join(f"{one:#x}" for one in addresses[:_FEW])
            more = " and more" if len(addresses) > _FEW else ""
            raise PatchError(f"{len(addresses)} symbols are called {name!r}: write the address, {few}{more}")
        return addresses[0]

    def _shows(self, code: bytes, names: Sequence[str]) -> bool:
        text = self._disassembled(code, self._address)
        return all(re.search(rf"\b{re.escape(name)}\b", text) for name in names)

    def _with(self, values: Mapping[str, int], shift: int = 0) -> bytes:
        """Its bytes if names have these values, all moved by `shift`."""
        address = self._address + shift
        values = {name: value + shift for name, value in values.items()} | {".": address}
        terms = list(self._terms(values))
        next_address = None
        # RIP-relative distances count from the end, which is known once the length is: encoded first with a distance
        # that fits.
        if any(term.is_rip_relative for term in terms):
            next_address = address + len(self._encoder.encode(self._rendered(terms, None)[0], address))
        text, numbers = self._rendered(terms, next_address)
        code = self._encoder.encode(text, address)
        read = self._disassembled(code, address)
        if next_address not in (None, address + len(code)):
            raise PatchError(f"{self._text!r}: would become {read!r}, of another length for each operand")
        # Our own encoder refuses what does not fit; keystone cuts it silently.
        if not self._encoder.is_ours:
            # Disassemblers leave out some numbers that are 0 or 1, which cannot have been cut.
            pairs = zip(terms, numbers, strict=True)
            self._check(read, [number for term, number in pairs if term.is_name or number not in (0, 1)])
        return code

    def _terms(self, values: Mapping[str, int]) -> Iterator[_Term]:
        """Numbers, and names that have values; what is added to a name belongs to it."""
        tokens, at = self._tokens, 1
        while at < len(tokens):
            token, start = tokens[at], at
            at += 1
            if token in values:
                value = values[token]
                while (added := self._added(at)) is not None:
                    value, at = value + added[0], added[1]
                yield _Term(start, at, value, token != ".", self._is_rip_relative(start, at))
            elif token[0].isdigit():
                sign = -1 if "".join(tokens[:start]).rstrip().endswith("-") else 1
                yield _Term(start, at, sign * self._number(token))

    def _added(self, at: int) -> tuple[int, int] | None:
        """``+ 4`` from a token on: the number and the token after it."""
        found = [row for row in range(at, len(self._tokens)) if not self._tokens[row].isspace()][:2]
        if len(found) < 2 or self._tokens[found[0]] not in "+-" or not self._tokens[found[1]][0].isdigit():
            return None
        number = self._number(self._tokens[found[1]])
        return (number if self._tokens[found[0]] == "+" else -number), found[1] + 1

    def _number(self, token: str) -> int:
        if not _NUMBER.fullmatch(token):
            raise UsageError(f"{self._text!r}: {token} is no whole number such as 10 or 0xa")
        return int(token, 0)

    def _is_rip_relative(self, start: int, end: int) -> bool:
        before, after = "".join(self._tokens[:start]), "".join(self._tokens[end:])
        operand = before.rpartition("[")[2] + after.partition("]")[0]
        in_brackets = "[" in before and "]" not in before.rpartition("[")[2]
        is_intel = in_brackets and re.search(r"\brip\b", operand, re.IGNORECASE) is not None
        return is_intel or re.match(r"\s*\(\s*%rip\s*\)", after) is not None

    def _rendered(self, terms: Sequence[_Term], next_address: int | None) -> tuple[str, list[int]]:
        """The text with its terms as hex numbers, and those numbers. `next_address` is that of the next instruction,
        which names beside rip are relative to."""
        parts, numbers, at = [], [], 0
        for term in terms:
            value = term.value
            if term.is_rip_relative:
                value = _RIP if next_address is None else value - next_address
            is_signed = not term.is_name and value < 0  # the sign stands before it
            parts += [*self._tokens[at : term.start], f"{-value if is_signed else value:#x}"]
            numbers.append(value)
            at = term.end
        return "".join([*parts, *self._tokens[at:]]), numbers

    def _check(self, text: str, numbers: Sequence[int]) -> None:
        """Check that the disassembly has the numbers of the text."""
        shown = [int(one, 0) for one in _SHOWN.findall(text)]
        shown += [one << other for one in shown for other in shown if 0 < other < 64]  # arm64: #1, lsl #12
        made = [(one, other) for one in numbers for other in numbers if 0 < other < 64 and one << other in shown]
        seen = {number for pair in made for number in pair}
        lost = [one for one in numbers if one not in seen and not any(map(_same(one), shown))]
        if lost:
            raise PatchError(
                f"{self._text!r}: would become {text!r}, which is without {lost[0]:#x}: an operand that does not fit"
            )

    def _disassembled(self, code: bytes, address: int) -> str:
        facts = self._symbols.facts
        lines = disassemble(facts, code, address)
        is_bad = not lines or not all(is_decoded(facts, line.text) for line in lines)
        if is_bad or (len(lines) != 1 and not self._encoder.is_ours):
            raise PatchError(f"{self._text!r}: would become {code.hex(' ')}, no single instruction: write hex:...")
        return "; ".join(line.text for line in lines)


def _same(value: int) -> Callable[[int], bool]:
    """Whether another number is the same in some width that holds both, with or without a sign."""

    def is_same(other: int) -> bool:
        widths = (8, 16, 32, 64)
        return any(
            all(-(1 << bits - 1) <= one < 1 << bits for one in (value, other)) and not (value - other) % (1 << bits)
            for bits in widths
        )

    return is_same
