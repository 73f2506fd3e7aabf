"""What registers a debugger is told of: their names, sizes and places in the protocol, as gdb's target descriptions.

Names of features, and of the registers that gdb asks of them, are gdb's own (GDB manual, appendix G, "Standard Target
Features"). System registers are a feature of ours, as QEMU has one.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final
from xml.sax.saxutils import quoteattr

from kinst.targets.values import dataclass

_HEAD: Final = '<?xml version="1.0"?>\n<!DOCTYPE target SYSTEM "gdb-target.dtd">\n<target version="1.0">'


@dataclass(frozen=True, slots=True)
class Register:
    """A register."""

    name: str  # as gdb calls it
    source: str  # as the engine does
    bits: int = 64
    type: str = ""  # in gdb's words; empty: an unsigned integer of that size
    group: str = ""  # general, float, vector, system; empty: gdb decides

    @property
    def is_system(self) -> bool:
        """Whether it is none of a program's."""
        return self.group == "system"

    @property
    def size(self) -> int:
        """Bytes in the protocol."""
        return self.bits // 8


@dataclass(frozen=True, slots=True)
class Feature:
    """Registers that belong together. `types` is XML that declares theirs."""

    name: str
    registers: Sequence[Register]
    types: str = ""


@dataclass(frozen=True)
class RegisterTable:
    """All of a machine's. The number of a register is its place here.

    Args:
        architecture: what gdb and BFD call the machine.
        features: those that a reply to `g` has first.
        system: the rest, which are asked for one by one.
        pc: the name of the program counter.
        privilege: the register with the mode, below which the engine gives system registers no value; None: it does.
    """

    architecture: str
    features: Sequence[Feature]
    system: Sequence[Feature]
    pc: str
    privilege: str | None = None

    @cached_property
    def general(self) -> tuple[Register, ...]:
        """Those of a `g` packet, in order."""
        return tuple(register for feature in self.features for register in feature.registers)

    @cached_property
    def all(self) -> tuple[Register, ...]:
        """By number."""
        return (*self.general, *(register for feature in self.system for register in feature.registers))

    @cached_property
    def description(self) -> bytes:
        """The target description."""
        lines, number = [_HEAD, f"  <architecture>{self.architecture}</architecture>"], 0
        for feature in (*self.features, *self.system):
            lines += [f"  <feature name={quoteattr(feature.name)}>", *([feature.types] if feature.types else ())]
            for register in feature.registers:
                lines.append(_line(register, number))
                number += 1
            lines.append("  </feature>")
        return "\n".join([*lines, "</target>", ""]).encode()


def _line(register: Register, number: int) -> str:
    group = f' group="{register.group}"' if register.group else ""
    kind = register.type or f"uint{register.bits}"
    return f'    <reg name="{register.name}" bitsize="{register.bits}" type="{kind}" regnum="{number}"{group}/>'


def vector_types(name: str, parts: Sequence[tuple[str, str, str, int]]) -> str:
    """XML of a union of vectors; each part has a field's name, its vector's name, and what this consists of."""
    vectors = [f'    <vector id="{vector}" type="{kind}" count="{count}"/>' for _, vector, kind, count in parts]
    fields = [f'<field name="{field}" type="{vector}"/>' for field, vector, _, _ in parts]
    union = f'    <union id="{name}">{"".join(fields)}<field name="uint128" type="uint128"/></union>'
    return "\n".join([*vectors, union])
