"""Units and entries -> .debug_info, .debug_abbrev and .debug_str in every form, in an ELF file in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kinst.targets.debuginfo.dwarf.numbers import Form
from kinst.targets.elf.file import ElfFile
from kinst.targets.elf.header import ElfHeader, FileKind
from kinst.targets.elf.sections import Section
from kinst.targets.elf.symbols import SYMBOL, read_symbol_table

Value = int | str | bytes | tuple["Form", "Value"]
Attribute = tuple[int, Form, Value]

_REFERENCES = {Form.REF1: 1, Form.REF2: 2, Form.REF4: 4, Form.REF8: 8, Form.REF_UDATA: 0}
_NUMBERS = {
    Form.ADDR: 8, Form.DATA1: 1, Form.DATA2: 2, Form.DATA4: 4, Form.DATA8: 8, Form.FLAG: 1, Form.FLAG_PRESENT: 0,
    Form.STRX1: 1, Form.STRX2: 2, Form.STRX3: 3, Form.STRX4: 4, Form.ADDRX1: 1, Form.ADDRX2: 2, Form.ADDRX3: 3,
    Form.ADDRX4: 4, Form.IMPLICIT_CONST: 0, Form.REF_SIG8: 8, Form.DATA16: 16,
}  # fmt: skip
_COUNTS = {Form.BLOCK1: 1, Form.BLOCK2: 2, Form.BLOCK4: 4}


@dataclass(frozen=True, slots=True)
class Die:
    """An entry. Values of references are labels of entries; of strings the text; of DW_FORM_indirect (form, value)."""

    tag: int
    attributes: Sequence[Attribute]
    children: Sequence["Die"] = ()
    label: str = ""


@dataclass(slots=True)
class Dwarf:
    """The debug information of a file, unit by unit."""

    info: bytearray = field(default_factory=bytearray)
    abbrev: bytearray = field(default_factory=bytearray)
    strings: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    others: dict[str, bytes] = field(default_factory=dict)
    _labels: dict[str, int] = field(default_factory=dict)

    def units(self, *units: tuple[int, int, Die]) -> "Dwarf":
        """Writes units of (version, size of offsets, root). Twice: the first time gives entries their offsets."""
        for _ in range(2):
            self.info.clear()
            self.abbrev.clear()
            for version, wide, root in units:
                self._unit(version, wide, root)
        return self

    def string(self, text: str) -> int:
        """Where a string is in .debug_str."""
        wanted = text.encode() + b"\0"
        at = self.strings.find(b"\0" + wanted)
        if at < 0:
            self.strings += wanted
            return len(self.strings) - len(wanted)
        return at + 1

    def _unit(self, version: int, wide: int, root: Die) -> None:
        start, table = len(self.info), len(self.abbrev)
        head = 4 if wide == 4 else 12
        tail = bytes([8]) if version < 5 else b""
        middle = b"" if version < 5 else bytes([1, 8])
        header = version.to_bytes(2, "little") + middle + table.to_bytes(wide, "little") + tail
        body = bytearray()
        self._die(body, root, start, start + head + len(header), version, wide, [0])
        self.abbrev += b"\0"
        length = len(header) + len(body)
        self.info += length.to_bytes(4, "little") if wide == 4 else b"\xff" * 4 + length.to_bytes(8, "little")
        self.info += header + body

    def _die(self, body: bytearray, die: Die, unit: int, base: int, version: int, wide: int, codes: list[int]) -> None:
        codes[0] += 1
        self.abbrev += uleb(codes[0]) + uleb(die.tag) + bytes([bool(die.children)])
        for attribute, form, value in die.attributes:
            self.abbrev += uleb(attribute) + uleb(form)
            if form == Form.IMPLICIT_CONST:
                assert isinstance(value, int)
                self.abbrev += uleb(value)
        self.abbrev += b"\0\0"
        self._labels[die.label] = base + len(body)
        body += uleb(codes[0])
        for _, form, value in die.attributes:
            body += self._value(form, value, unit, version, wide)
        for child in die.children:
            self._die(body, child, unit, base, version, wide, codes)
        if die.children:
            body += b"\0"

    def _value(self, form: Form, value: Value, unit: int, version: int, wide: int) -> bytes:
        match value:
            case (Form() as inner, other):
                return uleb(inner) + self._value(inner, other, unit, version, wide)
            case str():
                return self._text(form, value, unit, version, wide)
            case bytes():
                count = _COUNTS.get(form)
                return (uleb(len(value)) if count is None else len(value).to_bytes(count, "little")) + value
            case int():
                return _number(form, value, wide)
        raise AssertionError(value)

    def _text(self, form: Form, text: str, unit: int, version: int, wide: int) -> bytes:
        if form == Form.STRING:
            return text.encode() + b"\0"
        if form == Form.STRP:
            return self.string(text).to_bytes(wide, "little")
        target = self._labels.get(text, 0)
        if form == Form.REF_ADDR:
            return target.to_bytes(8 if version == 2 else wide, "little")
        size = _REFERENCES[form]
        return (target - unit if target else 0).to_bytes(size, "little") if size else padded(max(target - unit, 0))

    def file(self, symbols: Mapping[str, tuple[int, int]], path: Path = Path("memory.elf")) -> ElfFile:
        """An ELF file; `symbols` are functions: address and size."""
        return elf_file(
            {"info": bytes(self.info), "abbrev": bytes(self.abbrev), "str": bytes(self.strings)} | self.others,
            symbols,
            path,
        )


def elf_file(
    sections: Mapping[str, bytes], symbols: Mapping[str, tuple[int, int]], path: Path = Path("memory.elf")
) -> ElfFile:
    """An ELF file of `.debug_<name>` sections."""
    data, found = bytearray(), []
    for index, (name, content) in enumerate(sections.items(), 1):
        found.append(Section(index, f".debug_{name}", 1, 0, 0, len(data), len(content), 0, 0, 0, 1))
        data += content
    rows, names = np.zeros(len(symbols), SYMBOL), bytearray(b"\0")
    for row, (name, (address, size)) in enumerate(symbols.items()):
        rows[row] = (len(names), 0x12, 0, 1, address, size)
        names += name.encode() + b"\0"
    table = read_symbol_table(np.frombuffer(rows.tobytes(), np.uint8), np.frombuffer(names, np.uint8), ".symtab")
    header = ElfHeader(FileKind.EXEC, 62, 0, 0, 0, 56, 0, 0, 64, 0, 0)
    return ElfFile(path, np.frombuffer(bytes(data), np.uint8), header, tuple(found), table)


def _number(form: Form, value: int, wide: int) -> bytes:
    size = _NUMBERS.get(form)
    if size is not None:
        return value.to_bytes(size, "little") if size else b""
    if form in (Form.SEC_OFFSET, Form.LINE_STRP, Form.STRP, Form.GNU_STRP_ALT, Form.GNU_REF_ALT):
        return value.to_bytes(wide, "little")
    return uleb(value)


def uleb(value: int) -> bytes:
    """An unsigned LEB128 number."""
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def padded(value: int) -> bytes:
    """The same in four bytes, so that a reference has its size before its target has a place."""
    return bytes([value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21])
