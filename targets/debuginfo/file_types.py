"""One file -> what its debug information says: from .BTF if it has that, or else from DWARF."""

from collections.abc import Callable
from functools import cached_property

from kinst.targets.c_types import CType, EnumType, Function
from kinst.targets.debuginfo.btf import BtfTypes, btf_types
from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.types import DwarfTypes
from kinst.targets.elf.file import ElfLike
from kinst.targets.errors import ImageError


def _no_base() -> BtfTypes | None:
    return None


class FileTypes:
    """The types of an image, or of a kernel module. Nothing is read until a name is looked up."""

    def __init__(
        self, elf: ElfLike, module: str, debug: DebugSections, base: Callable[[], BtfTypes | None] = _no_base
    ) -> None:
        """Says where to look; nothing is read yet.

        Args:
            elf: the file.
            module: the name of its types' module.
            debug: its DWARF.
            base: the BTF of the kernel that it belongs to, if it is a module.
        """
        self.elf = elf
        self.damage: ImageError | None = None  # of .BTF
        self._module = module
        self._base = base
        self._dwarf = DwarfTypes(DebugInfo(debug), module, self._compact_type)

    @cached_property
    def btf(self) -> BtfTypes | None:
        """Kernels have every type in it, so DWARF is not asked for types; of variables it has only a few."""
        try:
            return btf_types(self.elf, self._module, self._base())
        except ImageError as error:
            self.damage = error
            return None

    def type_named(self, name: str) -> CType | None:
        """A typedef or base type by its name, or "struct x", "union x", "enum x"; of DWARF where there is no BTF."""
        return (self.btf or self._dwarf).type_named(name)

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant: its type and its value."""
        return (self.btf or self._dwarf).enumerator(name)

    def variable(self, name: str, address: int) -> CType | None:
        """The type of the variable or function at an address."""
        compact = None if self.btf is None else self.btf.variable(name)
        return self._dwarf.variable(name, address) if compact is None else compact

    def function(self, name: str, address: int | None) -> Function | None:
        """The prototype of a function; from DWARF of those that BTF leaves out since BPF could not call them."""
        compact = None if self.btf is None else self.btf.function(name)
        return self._dwarf.function(name, address) if compact is None else compact

    def _compact_type(self, name: str) -> CType | None:
        return None if self.btf is None else self.btf.type_named(name)
