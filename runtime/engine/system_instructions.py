"""The MRS, MSR and SYS instructions of arm64 that are handled here, out of all that the guest executes.

Unicorn reports every one of them, and kernels read system registers all the time: Linux's `current` is one. A Python
callback takes a microsecond, so a few bytes of host machine code look the instruction's encoding up in a table of bits,
and call Python only for those in the table.
"""

import ctypes
from collections.abc import Callable, Iterable
from typing import Any, Final

from kinst.runtime.engine.host.encodings import ENCODINGS, EncodingState

Encoding = tuple[int, int, int, int, int]  # op0, op1, CRn, CRm, op2

# TLBI by virtual address in the EL1&0, EL2 and EL3 regimes: for any ASID or one, for any level or the last, for this
# CPU or all (DDI 0487 C5.5).
TLBI_OF_ADDRESSES: Final = frozenset(
    (1, op1, 8, crm, op2) for op1 in (0, 4, 6) for crm in (3, 7) for op2 in (1, 3, 5, 7)
)

_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32), ctypes.c_void_p
)


class SystemInstructionFilter:
    """The filter of one hook. Calls `handle(_, register, fields, _)` for the wanted encodings and returns its result to
    Unicorn."""

    def __init__(
        self, wanted: Iterable[Encoding], handle: Any, before: Callable[[Any], ctypes.c_void_p] | None = None
    ) -> None:
        """`before` gives the function that is called in place of this object's own; None: that one is called."""
        self._wanted = frozenset(wanted)
        self._handle = handle
        self._in_python = _CALLBACK(self._call)
        own = ctypes.cast(self._in_python, ctypes.c_void_p)
        self._function = own if before is None else before(self._in_python)
        self._table = (ctypes.c_uint8 * (1 << 13))()
        for encoding in self._wanted:
            index = _index(encoding)
            self._table[index >> 3] |= 1 << (index & 7)
        self._state = EncodingState(self._function.value or 0, ctypes.addressof(self._table))
        self._code = ENCODINGS.function()

    def callback(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The function and the argument for Unicorn."""
        function = self._function if self._code is None else self._code.address
        return function, ctypes.c_void_p(ctypes.addressof(self._state))

    def _call(self, uc: int, register: int, fields: Any, data: int) -> int:
        if encoding_of(fields) not in self._wanted:
            return 0
        result: int = self._handle(uc, register, fields, data)
        return result


def encoding_of(fields: Any) -> Encoding:
    """The encoding in struct uc_arm64_cp_reg, whose 64-bit value is at offset 24."""
    crn, crm, op0, op1, op2 = fields[0:5]
    return op0, op1, crn, crm, op2


def operand_of(fields: Any) -> int:
    """The value of the instruction's register."""
    value: int = fields[6] | fields[7] << 32
    return value


def tlbi_address(fields: Any) -> int:
    """The virtual address that a TLBI names.

     63      48 47  44 43                      0
    +----------+------+-------------------------+
    |   ASID   |      |        VA[55:12]        |
    +----------+------+-------------------------+
    """
    address = (operand_of(fields) & (1 << 44) - 1) << 12
    return address | (0xFF << 56 if address >> 55 else 0)


def _index(encoding: Encoding) -> int:
    op0, op1, crn, crm, op2 = encoding
    return op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
