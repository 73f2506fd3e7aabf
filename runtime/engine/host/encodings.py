"""The state of the hook at arm64's MRS, MSR and SYS: what is in the table is handled in Python, the rest by Unicorn."""

import ctypes
from typing import Final

from kinst.runtime.engine.host.fields import Half, Word, layout
from kinst.runtime.engine.host.routine import Routine


@layout
class EncodingState(ctypes.Structure):
    """What the hook is called with."""

    __slots__ = ()
    callback: Word  # Python's
    table: Word  # the address of a bit for each encoding op0:op1:CRn:CRm:op2, which is 16 bits


@layout
class Instruction(ctypes.Structure):
    """What Unicorn's struct uc_arm64_cp_reg begins with."""

    __slots__ = ()
    crn: Half
    crm: Half
    op0: Half
    op1: Half
    op2: Half


ENCODINGS: Final = Routine("encodings", {"state": EncodingState, "instruction": Instruction})
