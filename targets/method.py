"""How probed instructions are carried out: a word of the command line. The manifest keeps it, but for JUMP, which
shows by what the image has."""

from enum import StrEnum


class Method(StrEnum):
    """`--method`."""

    AUTO = "auto"  # in trampolines, but for those that must be emulated
    EMULATE = "emulate"  # emulated wherever that can be
    BLOCK = "block"  # as AUTO, and what only counts where blocks of code begin needs no breakpoint
    JUMP = "jump"  # no handler: jumps to code in the image that counts by itself (`kinst.targets.standalone`)
    TRAP = "trap"  # as AUTO, and each hit is dispatched, also where the engine could count it
