"""What a CPU takes, by the number that its manual gives it -> a name, for probes and messages."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kinst.runtime.machine.exception_model import Taken
from kinst.targets.values import dataclass

OTHER: Final = "other"
_Numbers = Mapping[int, str]

# ESR_ELx.EC (DDI 0487, D19.2.37); IRQ and FIQ have no syndrome, and here the offset of their vectors.
_ARM64: Final[_Numbers] = MappingProxyType(
    {
        0x00: "undefined", 0x01: "wfi", 0x07: "simd-access", 0x0E: "illegal-state", 0x15: "svc", 0x16: "hvc",
        0x17: "smc", 0x18: "system-register", 0x20: "instruction-abort", 0x21: "instruction-abort",
        0x22: "pc-alignment", 0x24: "data-abort", 0x25: "data-abort", 0x26: "sp-alignment", 0x2F: "serror",
        0x30: "hardware-breakpoint", 0x31: "hardware-breakpoint", 0x32: "step", 0x33: "step", 0x34: "watchpoint",
        0x35: "watchpoint", 0x3C: "breakpoint",
    }
)  # fmt: skip
_ARM64_INTERRUPTS: Final[_Numbers] = MappingProxyType({0x080: "irq", 0x100: "fiq"})
# Privileged Architecture 1.12, table 3.6.
_RISCV64: Final[_Numbers] = MappingProxyType(
    {
        0: "instruction-misaligned", 1: "instruction-access-fault", 2: "illegal-instruction", 3: "breakpoint",
        4: "load-misaligned", 5: "load-access-fault", 6: "store-misaligned", 7: "store-access-fault", 8: "user-ecall",
        9: "supervisor-ecall", 11: "machine-ecall", 12: "instruction-page-fault", 13: "load-page-fault",
        15: "store-page-fault",
    }
)  # fmt: skip
_RISCV64_INTERRUPTS: Final[_Numbers] = MappingProxyType(
    {
        1: "supervisor-software", 3: "machine-software", 5: "supervisor-timer", 7: "machine-timer",
        9: "supervisor-external", 11: "machine-external",
    }
)  # fmt: skip
# SDM volume 3, table 6-1. A vector beyond 31 is an interrupt, or a program's `int`.
_AMD64: Final[_Numbers] = MappingProxyType(
    {
        0: "divide-error", 1: "debug", 3: "breakpoint", 4: "overflow", 5: "bound-range", 6: "invalid-opcode",
        7: "device-not-available", 8: "double-fault", 10: "invalid-tss", 11: "segment-not-present", 12: "stack-fault",
        13: "general-protection", 14: "page-fault", 16: "x87-error", 17: "alignment-check", 18: "machine-check",
        19: "simd-error", 32: "software",
    }
)  # fmt: skip
_AMD64_INTERRUPTS: Final[_Numbers] = MappingProxyType({2: "nmi", 32: "external"})
_FIRST_FREE: Final = 32


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The names of one machine, by number."""

    exceptions: Mapping[int, str]
    interrupts: Mapping[int, str]
    any_from: int | None = None  # the name of this number is that of all from it on

    def all(self) -> Sequence[tuple[bool, str]]:
        """All names, each once, with whether they are interrupts."""
        named = [(False, name) for name in self.exceptions.values()] + [
            (True, name) for name in self.interrupts.values()
        ]
        return list(dict.fromkeys([*named, (False, OTHER), (True, OTHER)]))

    def of(self, taken: Taken) -> str:
        """The name of what is taken, or `OTHER`."""
        table = self.interrupts if taken.is_interrupt else self.exceptions
        number = taken.number if self.any_from is None else min(taken.number, self.any_from)
        return table.get(number, OTHER)


ARM64_NAMES: Final = TakenNames(_ARM64, _ARM64_INTERRUPTS)
RISCV64_NAMES: Final = TakenNames(_RISCV64, _RISCV64_INTERRUPTS)
AMD64_NAMES: Final = TakenNames(_AMD64, _AMD64_INTERRUPTS, any_from=_FIRST_FREE)
