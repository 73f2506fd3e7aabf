"""One file -> what its debug information says: .BTF if it has that, or else DWARF, and CTF for what that lacks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from kinst.targets.c_types import CType, EnumType, Function, is_complete
from kinst.targets.debuginfo.btf import BtfTypes, btf_types
from kinst.targets.debuginfo.ctf.section import ctf_section
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.elf.file import ElfLike
from kinst.targets.errors import ImageError

if TYPE_CHECKING:
    from kinst.targets.debuginfo.ctf.types import CtfTypes, ParentOf
    from kinst.targets.debuginfo.dwarf.types import DwarfTypes


def _no_base() -> BtfTypes | None:
    return None


def _no_parent(_name: str) -> "CtfTypes | None":
    return None


class FileTypes:
    """The types of an image, or of a kernel module. Nothing is read until a name is looked up."""

    def __init__(
        self,
        elf: ElfLike,
        module: str,
        debug: DebugSections,
        base: Callable[[], BtfTypes | None] = _no_base,
        parent_of: "ParentOf" = _no_parent,
    ) -> None:
        """Says where to look; nothing is read yet.

        Args:
            elf: the file.
            module: the name of its types' module.
            debug: its DWARF.
            base: the BTF of the kernel that it belongs to, if it is a module.
            parent_of: the CTF of another file by its module's name, which this one's may continue.
        """
        self.elf = elf
        self.damage: ImageError | None = None  # of .BTF, or of CTF
        self.why_untyped = ""  # why CTF does not tell the types of functions and variables
        self._is_reading = False
        self.module = module
        self._base = base
        self._parent_of = parent_of
        self._debug = debug

    @cached_property
    def _dwarf(self) -> "DwarfTypes":
        from kinst.targets.debuginfo.dwarf.entry_search import DebugInfo  # kernels have BTF, firmware has often nothing
        from kinst.targets.debuginfo.dwarf.types import DwarfTypes

        return DwarfTypes(DebugInfo(self._debug), self.module, self._compact_type)

    @cached_property
    def btf(self) -> BtfTypes | None:
        """Kernels have every type in it, so DWARF is not asked for types; of variables it has only a few."""
        try:
            return btf_types(self.elf, self.module, self._base())
        except ImageError as error:
            self.damage = error
            return None

    @cached_property
    def ctf(self) -> "CtfTypes | None":
        """What is asked for what neither BTF nor DWARF has."""
        if self._is_reading or ctf_section(self.elf) is None:  # files whose types continue one another's
            return None
        self._is_reading = True
        from kinst.targets.debuginfo.ctf.types import ctf_types  # few files have any

        try:
            return ctf_types(self.elf, self.module, self._parent_of)
        except ImageError as error:
            self.damage = error
            return None

    def source(self) -> str:
        """Where types come from, with the names of files; empty if there are none."""
        found = [f".BTF of {self.elf.path.name}"] if self.btf is not None else []
        found += [f"DWARF of {self._debug.path.name}"] if self._debug.has_dwarf else []
        section = ctf_section(self.elf)
        if not found and section is not None and self.ctf is not None:
            found = [f"CTF ({section.name}) of {self.elf.path.name}"]
        return " and ".join(found)

    def type_named(self, name: str) -> CType | None:
        """A typedef or base type by its name, or "struct x", "union x", "enum x"; of DWARF where there is no BTF."""
        if self.btf is not None:
            return self.btf.type_named(name)
        found = self._dwarf.type_named(name)
        if (found is not None and is_complete(found)) or self.ctf is None:
            return found
        return self.ctf.type_named(name) or found

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """An enumeration constant: its type and its value."""
        found = (self.btf or self._dwarf).enumerator(name)
        return found if found is not None or self.btf is not None or self.ctf is None else self.ctf.enumerator(name)

    def variable(self, name: str, address: int) -> CType | None:
        """The type of the variable or function at an address."""
        compact = None if self.btf is None else self.btf.variable(name)
        found = self._dwarf.variable(name, address) if compact is None else compact
        if found is None and self.btf is None and self.ctf is not None:
            with self._noting_damage():
                return self.ctf.variable(name, address)
        return found

    def function(self, name: str, address: int | None) -> Function | None:
        """The prototype of a function; from DWARF of those that BTF leaves out since BPF could not call them."""
        compact = None if self.btf is None else self.btf.function(name)
        found = self._dwarf.function(name, address) if compact is None else compact
        if found is None and self.btf is None and self.ctf is not None:
            with self._noting_damage():
                return self.ctf.function(name, address)
        return found

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        """CTF whose types of symbols are missing, or do not fit the symbols: then these have none."""
        try:
            yield
        except ValueError as error:
            section = ctf_section(self.elf)
            self.why_untyped = f"{self.elf.path}: {section.name if section else 'CTF'}: {error}"

    def _compact_type(self, name: str) -> CType | None:
        return None if self.btf is None else self.btf.type_named(name)
