"""How displaced instructions are carried out: a word of the command line that the manifest keeps."""

from enum import StrEnum


class Method(StrEnum):
    """`--method`."""

    AUTO = "auto"  # in trampolines, but for those that must be emulated
    EMULATE = "emulate"  # emulated wherever that can be
    BLOCK = "block"  # as AUTO, and what only counts where blocks of code begin needs no breakpoint
    TRAP = "trap"  # as AUTO, and each hit is told to the tracer, also where the engine could count it
