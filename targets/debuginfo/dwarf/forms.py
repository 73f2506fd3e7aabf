"""Attribute forms of DWARF 2 to 5 (7.5.6): how long a value is, and bytes -> the value.

To a reader that skips values a form is a `Step`: a number of bytes, or one of a few ways to find the end.
"""

import struct
from typing import Final

from kinst.targets.debuginfo.dwarf.numbers import Form
from kinst.targets.errors import ImageError
from kinst.targets.leb128 import leb, signed_leb
from kinst.targets.values import dataclass

# Steps below zero: the value's own bytes say where it ends.
LEB, TEXT, COUNTED1, COUNTED2, COUNTED4, COUNTED_LEB, ANY = -1, -2, -3, -4, -5, -6, -7

_FIXED: Final = {
    Form.DATA1: 1, Form.DATA2: 2, Form.DATA4: 4, Form.DATA8: 8, Form.DATA16: 16, Form.FLAG: 1, Form.FLAG_PRESENT: 0,
    Form.IMPLICIT_CONST: 0, Form.REF1: 1, Form.REF2: 2, Form.REF4: 4, Form.REF8: 8, Form.REF_SIG8: 8,
    Form.REF_SUP4: 4, Form.REF_SUP8: 8, Form.STRX1: 1, Form.STRX2: 2, Form.STRX3: 3, Form.STRX4: 4,
    Form.ADDRX1: 1, Form.ADDRX2: 2, Form.ADDRX3: 3, Form.ADDRX4: 4,
}  # fmt: skip
_VARIABLE: Final = {
    Form.SDATA: LEB, Form.UDATA: LEB, Form.REF_UDATA: LEB, Form.STRX: LEB, Form.ADDRX: LEB, Form.LOCLISTX: LEB,
    Form.RNGLISTX: LEB, Form.GNU_ADDR_INDEX: LEB, Form.GNU_STR_INDEX: LEB, Form.STRING: TEXT, Form.BLOCK1: COUNTED1,
    Form.BLOCK2: COUNTED2, Form.BLOCK4: COUNTED4, Form.BLOCK: COUNTED_LEB, Form.EXPRLOC: COUNTED_LEB,
    Form.INDIRECT: ANY,
}  # fmt: skip
_OFFSETS: Final = frozenset(
    {Form.STRP, Form.LINE_STRP, Form.SEC_OFFSET, Form.STRP_SUP, Form.GNU_REF_ALT, Form.GNU_STRP_ALT}
)

ADDRESS_INDEXES: Final = frozenset(
    {Form.ADDRX, Form.ADDRX1, Form.ADDRX2, Form.ADDRX3, Form.ADDRX4, Form.GNU_ADDR_INDEX}
)
STRING_INDEXES: Final = frozenset({Form.STRX, Form.STRX1, Form.STRX2, Form.STRX3, Form.STRX4, Form.GNU_STR_INDEX})
UNIT_REFERENCES: Final = frozenset({Form.REF1, Form.REF2, Form.REF4, Form.REF8, Form.REF_UDATA})
ELSEWHERE: Final = frozenset({Form.REF_SUP4, Form.REF_SUP8, Form.STRP_SUP, Form.GNU_REF_ALT, Form.GNU_STRP_ALT})


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the header of a unit says about the size of its values."""

    version: int
    address: int
    offset: int  # 4, or 8 in 64-bit DWARF

    @property
    def reference(self) -> int:
        """DW_FORM_ref_addr: DWARF 2 made it an address (7.5.4 there)."""
        return self.address if self.version < 3 else self.offset


def step(form: int, sizes: Sizes) -> int:
    """How to skip a value.

    Raises:
        ImageError: there is no such form.
    """
    found = _FIXED.get(form) if form in _FIXED else _VARIABLE.get(form)  # type: ignore[call-overload]
    if found is not None:
        return int(found)
    if form == Form.ADDR:
        return sizes.address
    if form == Form.REF_ADDR:
        return sizes.reference
    if form in _OFFSETS:
        return sizes.offset
    raise ImageError(f"attribute form {form:#x} does not exist")


def skip(data: bytes, at: int, how: int, sizes: Sizes) -> int:
    """Where a value ends; `how` is its step."""
    if how >= 0:
        return at + how
    if how == LEB:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if how == TEXT:
        return data.index(b"\0", at) + 1
    if how == ANY:
        form, at = leb(data, at)
        if form in (Form.INDIRECT, Form.IMPLICIT_CONST):
            raise ImageError(f"an indirect form that is {Form(form).name} again")
        return skip(data, at, step(form, sizes), sizes)
    return _after_counted(data, at, how)


def _after_counted(data: bytes, at: int, how: int) -> int:
    if how == COUNTED_LEB:
        count, at = leb(data, at)
        return at + count
    width = {COUNTED1: 1, COUNTED2: 2, COUNTED4: 4}[how]
    return at + width + int.from_bytes(data[at : at + width], "little")


def read_form(data: bytes, at: int, form: int, sizes: Sizes) -> tuple[int, int | bytes, int]:
    """A value: its form (never INDIRECT), its content (a number, or the bytes of a block or string), and its end."""
    if form == Form.INDIRECT:
        form, at = leb(data, at)
        if form in (Form.INDIRECT, Form.IMPLICIT_CONST):
            raise ImageError(f"an indirect form that is {Form(form).name} again")
    how = step(form, sizes)
    if how >= 0:
        return form, int.from_bytes(_exactly(data, at, how), "little") if how else 1, at + how
    if how == LEB:
        value, end = signed_leb(data, at) if form == Form.SDATA else leb(data, at)
        return form, value, end
    end = skip(data, at, how, sizes)
    if how == TEXT:
        return form, data[at : end - 1], end
    start = leb(data, at)[1] if how == COUNTED_LEB else at + {COUNTED1: 1, COUNTED2: 2, COUNTED4: 4}[how]
    return form, _exactly(data, start, end - start), end


def _exactly(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ImageError("a value that goes beyond the unit's end")
    return data[at : at + size]


DAMAGE: Final = (IndexError, KeyError, ValueError, struct.error, OverflowError)
"""What reading damaged bytes raises, beside ImageError."""
