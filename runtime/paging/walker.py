"""What each machine's page-table walker answers: control registers and guest tables -> physical page and permissions.

The machine answers every TLB miss itself (Unicorn's virtual TLB), so that trampolines are reachable in every address
space and guest stores take the fast path; the walkers are therefore what a real MMU does, fault codes included.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Protocol

LoadPhysical = Callable[[int], int]  # physical address of a 64-bit table entry -> its value
StorePhysical = Callable[[int, int], None]  # physical address, 64-bit value: accessed and dirty bits


class Access(IntEnum):
    """What the CPU is about to do."""

    READ = 0
    WRITE = 1
    FETCH = 2


class Permission(IntFlag):
    """What the TLB entry may be used for."""

    READ = 1
    WRITE = 2
    EXECUTE = 4
    ALL = 7


@dataclass(frozen=True, slots=True)
class Translation:
    """One page: `physical` is the address that belongs to the one asked for, not the start of the page.

    `shift` is log2 of the size that the guest's entry maps, where Unicorn has to be told to forget all of it (arm64).
    """

    physical: int
    permissions: Permission
    shift: int = 12


class PageFault(Exception):
    """The walk failed. `code` is what the machine reports (x86 error code, ARM fault status, RISC-V cause)."""

    def __init__(self, address: int, access: Access, code: int) -> None:
        super().__init__(f"{access.name.lower()} of {address:#x}, code {code:#x}")
        self.address = address
        self.access = access
        self.code = code


class Registers(Protocol):
    """One CPU's registers by the machine's own names in lower case, e.g. "x0", "satp", "cr3", "ttbr0_el1"."""

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
        """Register -> bits to be taken for 1 when the tracer reads: a kernel may read its programs' pages only while it
        says so (SMAP, SUM), but copyin() may always."""
        ...

    @property
    def regime(self) -> tuple[str, ...]:
        """Registers that decide what translations are: CPUs that have them alike may use each other's. Empty: never."""
        ...

    def tables(self, registers: Registers) -> int | None:
        """Where the tables are that the CPU translates by; None: translation is off."""
        ...

    def translate(
        self, registers: Registers, load: LoadPhysical, store: StorePhysical, address: int, access: Access
    ) -> Translation:
        """Translate one virtual address as the current mode and tables say, or raise PageFault.

        With translation off the physical address is the virtual one, and everything is allowed.
        A write permission is granted only where the dirty bit is already set or `access` is WRITE.
        """
        ...
