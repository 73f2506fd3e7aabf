"""How probed instructions are run: a word of the command line. The manifest keeps it, except JUMP, which shows in what
the image has."""

from enum import StrEnum


class Method(StrEnum):
    """`--method`."""

    AUTO = "auto"  # in trampolines, except those that must be emulated
    EMULATE = "emulate"  # emulated wherever that is possible
    BLOCK = "block"  # as AUTO, and what only counts at the start of a basic block needs no breakpoint
    JUMP = "jump"  # no handler: jumps to code in the image that counts by itself (`kinst.targets.standalone`)
    TRAP = "trap"  # as AUTO, but each hit is dispatched, even if the engine could count it
