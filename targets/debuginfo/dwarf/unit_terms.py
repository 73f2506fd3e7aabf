"""What expressions of a unit refer to: its base types, and its part of .debug_addr (DWARF 5, 2.5.1 and 7.27)."""

from typing import Final

from kinst.targets.debuginfo.dwarf.forms import DAMAGE
from kinst.targets.debuginfo.dwarf.numbers import At, Tag
from kinst.targets.debuginfo.dwarf.units import Units
from kinst.targets.errors import ImageError
from kinst.targets.values import dataclass
from kinst.targets.visible import text_of

_SIGNED: Final = frozenset({0x05, 0x06, 0x0D})  # DW_ATE_signed, signed_char, signed_fixed
_INTEGERS: Final = frozenset({0x01, 0x02, 0x05, 0x06, 0x07, 0x08, 0x10, 0x11, 0x12})  # and address, boolean, characters


@dataclass(frozen=True, slots=True)
class BaseType:
    """The type of a value on an expression's stack; `is_integer` is false for floating point and the like."""

    name: str
    size: int
    is_signed: bool
    is_integer: bool = True


class UnitTerms:
    """The terms of one unit. Both methods raise ImageError if debug information is damaged."""

    def __init__(self, units: Units, unit: int) -> None:
        """`unit` is the offset of the unit in .debug_info."""
        self._units = units
        self.unit = unit

    def base_type(self, offset: int) -> BaseType:
        """The base type at an offset into the unit."""
        entries = self._units.open(self._units.at(self.unit))
        entry = entries.entry(self.unit + offset)
        size, encoding = entry.number(At.BYTE_SIZE), entry.number(At.ENCODING)
        if entry.declaration.tag != Tag.BASE_TYPE or not size or encoding is None:
            raise entries.damaged(ImageError("an expression takes it for a base type"), entry.offset)
        name = text_of(entries.text(entry, At.NAME) or b"")
        return BaseType(name, size, encoding in _SIGNED, encoding in _INTEGERS)

    def address(self, index: int) -> int:
        """A word of .debug_addr."""
        entries = self._units.open(self._units.at(self.unit))
        try:
            return entries.indexed_address(index)
        except DAMAGE as error:
            raise entries.damaged(error) from None
