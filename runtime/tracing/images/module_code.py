"""The modules in a guest's memory -> names of their addresses, and how to unwind their code, with or without their
files.

Both are found as for an image: an ELF file is made of what is in memory, with the symbols that the kernel keeps. It is
made when an address in the module is first asked for.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from kinst.rewriter.program import Program, open_program
from kinst.runtime.clauses.environment import Symbols
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.trap.faults import Fault
from kinst.runtime.unwinding.frame_rules import CallerRule, FrameRules, Rules
from kinst.runtime.unwinding.unwind import Rule, plain_address
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.elf.header import SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE
from kinst.targets.elf.symbols import SECTION_UNKNOWN, SHN_UNDEF, STT_SECTION, symbols_of
from kinst.targets.image import Image, open_to_run
from kinst.targets.kernels.kernel_module import KernelModule
from kinst.targets.packed.memory import Part, elf_of_parts

Read = Callable[[int, int], bytes]  # address, size: the guest's bytes without breakpoints; raises Fault
_KEPT: Final = 1 << 16  # addresses whose module is kept


class ModuleCode:
    """One module."""

    def __init__(self, module: KernelModule, arch: ArchFacts, read: Read) -> None:
        """Its code is read now: names are asked for when it may be gone."""
        self.module, self._arch = module, arch
        self._code = {one.start: _content(read, one) for one in module.text}
        self.rules = FrameRules(arch, lambda: self._program, int)

    def has(self, address: int) -> bool:
        """Whether it is, or was, at an address."""
        return any(address in span for span in (*self.module.core, *self.module.init))

    def is_of(self, module: KernelModule) -> bool:
        """Whether it is the same module at the same place."""
        own = self.module
        is_there = (own.name, own.core, own.init) == (module.name, module.core, module.init)
        return is_there and np.array_equal(own.symbols.records(), module.symbols.records())

    @cached_property
    def names(self) -> ImageSymbols:
        """The names of its addresses."""
        follows_call = self.rules.unwinder.follows_call
        return ImageSymbols(self._image, lambda: self._program.functions, follows_call=follows_call)

    @cached_property
    def _program(self) -> Program:
        return open_program(self._image)

    @cached_property
    def _image(self) -> Image:
        module = self.module
        parts = [part for span in (*module.core, *module.init) for part in self._parts(span)]
        data = elf_of_parts(self._arch, parts, parts[0].address if parts else 0)
        with tempfile.NamedTemporaryFile(prefix="kinst-", suffix=".elf") as file:
            file.write(data.tobytes())
            file.flush()
            image = open_to_run(Path(file.name), module=module.name)
        rows = module.symbols.records()[module.symbols.kind != STT_SECTION]
        rows["section"][rows["section"] != SHN_UNDEF] = SECTION_UNKNOWN  # that of the file is none of the image's
        return replace(image, symbols=symbols_of(rows, module.symbols.strings))

    def _parts(self, span: range) -> Iterator[Part]:
        """An area of memory: its code, which is at its start, and what else is in it."""
        code = self._code.get(span.start, b"")
        if code:
            yield Part(".text", span.start, np.frombuffer(code, np.uint8), len(code), SHF_ALLOC | SHF_EXECINSTR)
        if len(code) < len(span):
            nothing = np.zeros(0, np.uint8)
            yield Part(".data", span.start + len(code), nothing, len(span) - len(code), SHF_ALLOC | SHF_WRITE)


def _content(read: Read, place: range) -> bytes:
    """Its bytes; empty if they are not in memory."""
    try:
        return read(place.start, len(place))
    except Fault:
        return b""


class ModulesCode:
    """All of them, and the image that loads them; implements `Symbols` of clauses, and `Rules` of unwinding.

    Names of what is gone are known until something else is there: they are printed long after a probe has fired.
    """

    def __init__(self, symbols: Symbols, rules: Rules, arch: ArchFacts, read: Read) -> None:
        """There are none. `symbols` and `rules` are for all other addresses."""
        self._first, self._rules, self._arch, self._read = symbols, rules, arch, read
        self._every: list[ModuleCode] = []  # that were ever there
        self._present: list[ModuleCode] = []
        self._found: dict[int, ModuleCode | None] = {}  # by address

    def change(self, modules: Sequence[KernelModule]) -> None:
        """These are in memory now, in the order in which they were loaded."""
        self._present = [self._known(one) for one in modules]
        self._found.clear()

    def _known(self, module: KernelModule) -> ModuleCode:
        found = next((one for one in self._every if one.module is module or one.is_of(module)), None)
        if found is None:
            found = ModuleCode(module, self._arch, self._read)
            self._every.append(found)
        return found

    def _symbols_at(self, address: int) -> Symbols:
        """What names an address. If two modules had it, one after the other, nothing does."""
        if not self._every:
            return self._first
        if address not in self._found:
            if len(self._found) >= _KEPT:
                self._found.clear()
            here = [one for one in self._every if one.has(address)]
            self._found[address] = here[0] if len(here) == 1 else None
        found = self._found[address]
        return self._first if found is None else found.names

    def _rules_at(self, address: int) -> Rules:
        found = next((one for one in reversed(self._present) if one.has(address)), None)
        return self._rules if found is None else found.rules

    def object_start(self, address: int, kind: str) -> int:
        """See `Symbols`."""
        return self._symbols_at(address).object_start(address, kind)

    def describe(self, address: int, kind: str) -> str:
        """See `Symbols`."""
        return self._symbols_at(address).describe(address, kind)

    def here(self, address: int) -> Rule | None:
        """See `Rules`."""
        return self._rules_at(address).here(address)

    def caller(self, address: int) -> CallerRule | None:
        """See `Rules`. A return address may be just past the module, and may be signed."""
        return self._rules_at(plain_address(self._arch, address) - 1).caller(address)

    def is_start(self, address: int) -> bool:
        """See `Rules`."""
        return self._rules_at(address).is_start(address)
