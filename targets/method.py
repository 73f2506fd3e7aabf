"""How displaced instructions are carried out: a word of the command line that the manifest keeps."""

from enum import StrEnum


class Method(StrEnum):
    """`--method`. Manifests of the first version say "trap" for AUTO."""

    AUTO = "auto"  # in trampolines, but for those that must be emulated
    EMULATE = "emulate"  # emulated wherever that can be
