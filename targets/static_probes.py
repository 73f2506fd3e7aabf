"""The static probes that an image says it has: nops in its code, recorded in ELF notes as systemtap's sys/sdt.h makes
them (`.note.stapsdt`).

Descriptor of a note, type 3, owner `stapsdt`; addresses are link addresses, adjusted by how far `.stapsdt.base` has
moved since the note was written:

     0  8  address of the nop
     8  8  address of `.stapsdt.base` when the note was written
    16  8  address of the semaphore, a 16-bit count of tracers; 0: none
    24     provider, name, operands: three NUL-terminated texts

An operand is `size@place`, a negative size for a signed one: `-4@%edi 8@-16(%rbp) 4@$5`.
"""

import re
import struct
from enum import IntEnum
from typing import Final

from kinst.targets.elf.header import FileKind
from kinst.targets.elf.notes import notes_in
from kinst.targets.elf.sections import content
from kinst.targets.image import Image
from kinst.targets.values import dataclass

_NOTES: Final = ".note.stapsdt"
_BASE: Final = ".stapsdt.base"
_KIND: Final = 3
_OWNER: Final = b"stapsdt\0"
_ADDRESSES: Final = struct.Struct("<QQQ")
_MASK: Final = (1 << 64) - 1
_LONGEST: Final = 1 << 16  # bytes of a descriptor that is trusted
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]{0,62}", re.ASCII)
_OPERAND: Final = re.compile(r"(?:(-?)([0-9]+)(f?)@)?(.*)", re.DOTALL)
_BETWEEN: Final = re.compile(r"\s+(?=-?[0-9]+f?@)")
_SIZES: Final = (1, 2, 4, 8)


class PlaceKind(IntEnum):
    """What happens at a place while its probe is enabled. Stored in manifests: numbers never change."""

    NOP = 0  # the probe fires
    BRANCH = 1  # control goes from the nop to `target`, where the kernel calls its probe function
    CALL = 2  # the entry of that function, which many probes share: the one whose id it is given fires; it returns
    BLOCK = 3  # the probe fires if the code at `target`, run on the side, reaches a call of one of `Callees`


@dataclass(frozen=True, slots=True)
class StaticPlace:
    """One place of a static probe. `operands` are the texts of a note."""

    address: int
    operands: tuple[str, ...] = ()
    kind: PlaceKind = PlaceKind.NOP
    target: int = 0


@dataclass(frozen=True, slots=True)
class Callees:
    """What the blocks of a tracepoint call with its arguments, after a first one, the tracer's own.

    A block first checks words of the tracepoint's record: where they are 0 nobody traces.
    """

    record: int
    size: int
    functions: tuple[int, ...]
    word: int  # holds the address of another such function while the kernel itself traces, else 0


@dataclass(frozen=True, slots=True)
class StaticProbe:
    """One static probe: a compiler that duplicates code makes several places of it. Link addresses, 0 for none."""

    provider: str
    module: str  # empty: that of the image
    function: str
    name: str
    places: tuple[StaticPlace, ...]
    semaphores: tuple[int, ...] = ()
    declared: tuple[str, ...] = ()  # types of the arguments, where the image says more than their size and sign
    id_word: int = 0  # 32 bits that hold the probe's id while it is enabled, else 0
    switch: int = 0  # a byte that is 1 while any such probe is enabled
    callees: Callees | None = None  # of a tracepoint

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it one probe."""
        return self.provider, self.module, self.function, self.name

    @property
    def types(self) -> tuple[str, ...]:
        """C types of the arguments; where no more is known the size and sign, as the first place has them."""
        seen = tuple(operand_type(text) for text in self.places[0].operands) if self.places else ()
        return self.declared + seen[len(self.declared) :]


@dataclass(frozen=True, slots=True)
class StaticNote:
    """One note. `__` in the name is a dash, as everywhere in DTrace."""

    provider: str
    name: str
    place: StaticPlace
    semaphore: int


def static_notes(image: Image) -> tuple[StaticNote, ...]:
    """All records of static probes, in address order, without duplicates. What is damaged, or not linked yet, is left
    out."""
    section = image.section(_NOTES)
    if section is None or image.kind is FileKind.REL:
        return ()
    base = image.section(_BASE)
    data = content(image.data, section).tobytes()
    found = {
        _read(note.description, None if base is None else base.address)
        for note in notes_in(data)
        if note.kind == _KIND and note.owner == _OWNER and len(note.description) <= _LONGEST
    }
    return tuple(sorted((note for note in found if note is not None), key=_order))


def _order(note: StaticNote) -> tuple[int, str, str, tuple[str, ...], int]:
    return note.place.address, note.provider, note.name, note.place.operands, note.semaphore


def _read(descriptor: bytes, base: int | None) -> StaticNote | None:
    texts = descriptor[_ADDRESSES.size :].split(b"\0")
    if len(texts) < 3:
        return None
    address, base_then, semaphore = _ADDRESSES.unpack_from(descriptor)
    # prelink moves sections without adjusting notes; .stapsdt.base moves along and shows by how much.
    moved = 0 if base is None else base - base_then
    provider, name, operands = (text.decode("ascii", "replace") for text in texts[:3])
    if not is_name(provider) or not is_name(name) or not operands.isprintable():
        return None
    place = StaticPlace(address + moved & _MASK, split_operands(operands))
    return StaticNote(provider, dashed(name), place, semaphore and semaphore + moved & _MASK)


def is_name(text: str) -> bool:
    """Whether a text can be a field of a probe's name."""
    return _NAME.fullmatch(text) is not None


def dashed(name: str) -> str:
    """A probe's name as it is written in C -> as D spells it."""
    return name.replace("__", "-")


def split_operands(text: str) -> tuple[str, ...]:
    """Operands one by one. Places may contain blanks (`[sp, 16]`): only a size begins the next operand."""
    text = text.strip()
    if not text:
        return ()
    return tuple(_BETWEEN.split(text) if "@" in text else text.split())


def take_apart(operand: str) -> tuple[int, bool, str] | None:
    """Size in bytes, whether it is signed, and the text of the place; None for sizes that no integer has.

    An operand without a size is a whole register.
    """
    found = _OPERAND.fullmatch(operand)
    assert found is not None, "its last group takes anything"
    sign, size, floating, place = found.groups()
    number = 8 if size is None else int(size[:3])
    return None if floating or number not in _SIZES else (number, sign == "-", place.strip())


def operand_type(operand: str) -> str:
    """The C type of an operand: only its size and its sign are known."""
    found = take_apart(operand)
    if found is None:
        return "uintptr_t"
    size, is_signed, _ = found
    return f"{'' if is_signed else 'u'}int{8 * size}_t"
