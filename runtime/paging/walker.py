"""What a machine's page-table walker does: control registers and guest tables -> physical page and permissions.

The machine handles every TLB miss itself (Unicorn's virtual TLB), so that trampolines are reachable in every address
space and guest stores take the fast path. Therefore the walkers do all that a real MMU does, with its fault codes.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum, IntFlag
from typing import Protocol

from kinst.targets.values import dataclass

LoadPhysical = Callable[[int], int]  # physical address of a 64-bit table entry -> its value
StorePhysical = Callable[[int, int], None]  # physical address, 64-bit value; sets accessed and dirty bits


class Access(IntEnum):
    """What the CPU is about to do."""

    READ = 0
    WRITE = 1
    FETCH = 2


class Permission(IntFlag):
    """What a TLB entry may be used for."""

    READ = 1
    WRITE = 2
    EXECUTE = 4
    ALL = 7


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of an address. `physical` is its physical address, not the start of the page.

    `shift` is log2 of the size that the guest's entry maps, on arm64, where an invalidation of one address must make
    Unicorn forget all of it.
    """

    physical: int
    permissions: Permission
    shift: int = 12


class PageFault(Exception):
    """A walk failed. `code` is what the machine reports: x86's error code, Arm's fault status or RISC-V's cause."""

    def __init__(self, address: int, access: Access, code: int) -> None:
        super().__init__(f"{access.name.lower()} of {address:#x}, code {code:#x}")
        self.address = address
        self.access = access
        self.code = code


class Registers(Protocol):
    """One CPU's registers, by the machine's own names in lower case: "x0", "satp", "cr3", "ttbr0_el1"."""

    def get(self, name: str) -> int:
        """The register's value, unsigned."""
        ...

    def set(self, name: str, value: int) -> None:
        """Change the register."""
        ...


class Walker(Protocol):
    """One machine's MMU."""

    @property
    def tracer_bits(self) -> Mapping[str, int]:
        """Register -> bits that count as 1 when the tracer reads. A kernel may read its programs' pages only while it
        permits itself to (SMAP, SUM), but copyin() always may."""
        ...

    @property
    def kernel_bits(self) -> Mapping[str, tuple[int, int]]:
        """Register -> bits that are cleared, and then set, in which a CPU in the kernel differs from one in user
        mode."""
        ...

    @property
    def regime(self) -> tuple[str, ...]:
        """The registers that translations depend on: CPUs with the same values may share translations. Empty: they
        never may."""
        ...

    @property
    def context(self) -> Mapping[str, int]:
        """Registers -> their bits that count: a translation is the same while these bits and the tables are."""
        ...

    def has_context(self, registers: Registers) -> bool:
        """Whether that holds in the CPU's mode; then the engine may give a translation again without asking."""
        ...

    def tables(self, registers: Registers) -> int | None:
        """What identifies the tables by which the CPU translates; None if translation is off."""
        ...

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """Translate one virtual address by the current mode and tables. Raises PageFault.

        With translation off, the physical address is the virtual one, and everything is allowed. Permission to write is
        given only if the dirty bit is already set or `access` is WRITE.
        """
        ...
