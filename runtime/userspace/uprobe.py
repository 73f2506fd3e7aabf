"""uprobe: functions and instructions of programs and libraries of the guest's user space.

`uprobe:/bin/busybox:main:entry`, `uprobe:/lib/libc.so.6:malloc:return`, `uprobe:/bin/prog:f:7` or `:0x1234:`.
A probe fires in every process that executes the instruction, before it does. Its arguments are those of FBT's probes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Final

from kinst.runtime.paging.walker import PageFault
from kinst.runtime.providers.fbt import argument_at_entry
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, ProviderError, Registration
from kinst.runtime.providers.stability import EVOLVING_ISA, PRIVATE, PRIVATE_ISA, ProviderAttributes
from kinst.runtime.trap.arch.emulator import Emulation
from kinst.runtime.trap.arch.registry import emulator
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.userspace.enabled_sites import EnabledSites
from kinst.runtime.userspace.guest_files import GIVEN, GuestFile, GuestFiles
from kinst.runtime.userspace.program_sites import ENTRY, RETURN, ProgramSite, ProgramSites
from kinst.runtime.userspace.user_code import Reached, UserCode
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import Function, Void, strip
from kinst.targets.instruction import Flow
from kinst.targets.probe import ProbeName, is_glob
from kinst.targets.values import dataclass

_CONDITIONAL: Final = (Flow.BRANCH, Flow.INDIRECT_JUMP)  # that leave their function or do not
_VALUE: Final = 1  # arg1 of a return: what is returned
_TAIL_CALL: Final = "a tail call: what is returned is not known before the function that it calls returns"


@dataclass(frozen=True, slots=True)
class _Probe:
    """One probe, and where it fires."""

    guest_file: GuestFile
    program: ProgramSites
    function: str
    name: str
    sites: tuple[ProgramSite, ...] = field(default=())


class UprobeProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    registration = Registration(
        "uprobe",
        ProviderAttributes(EVOLVING_ISA, PRIVATE, PRIVATE, EVOLVING_ISA, PRIVATE_ISA),
        needs="the path of a program in the guest, in its second field: uprobe:/bin/busybox:main:entry; the file is "
        "that of --initrd, or of --user",
    )

    def __init__(self, code: UserCode, files: GuestFiles, arch: ArchFacts) -> None:
        """No probe yet, and nothing is watched."""
        self._code, self._files, self._arch = code, files, arch
        self._enabled = EnabledSites(code)
        self._program = cache(lambda file: ProgramSites(file.file, PurePosixPath(file.module).name, arch, file.names))
        self._probes: dict[int, _Probe] = {}
        self._emulator = emulator(arch)
        self._at_entry = argument_at_entry(arch)

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create the probes of a program that is named. Raises KinstError: its file cannot be read, or Linux not be
        followed."""
        if wanted is None or not wanted.module:
            return
        for file in self._files.find(wanted.module):
            obstacle = self._code.obstacle()
            if obstacle:
                raise ProviderError(f"uprobe:{wanted.module}: {obstacle}")
            program = self._program(file)
            for function, name, sites in program.find(wanted.function, wanted.name):
                if probes.lookup(file.module, function, name) is None:
                    made = probes.create(file.module, function, name)
                    self._probes[made] = _Probe(file, program, function, name, tuple(sites))

    def why_not(self, wanted: ProbeName) -> str:
        """See `ExplainsMisses`."""
        if not wanted.module:
            return f"it needs {self.registration.needs}"
        files = list(self._files.find(wanted.module))
        if not files:
            return f"no program or library {wanted.module} in --initrd; {GIVEN}"
        why = "" if is_glob(wanted.module) else self._program(files[0]).why(wanted.function, wanted.name)
        return why and f"{wanted.module}: {why}"

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Watch what the probes are of."""
        self.disable(identifiers)
        for identifier in identifiers.tolist():
            probe = self._probes[identifier]
            reached = (self._reached(identifier, probe, site, action) for site in probe.sites)
            sites = ((probe.guest_file, site, called) for site, called in zip(probe.sites, reached, strict=True))
            self._enabled.enable(identifier, sites)

    def disable(self, identifiers: Identifiers) -> None:
        """Watch it no more."""
        self._enabled.disable(identifiers.tolist())

    def destroy(self, identifiers: Identifiers) -> None:
        """Forget these probes."""
        for identifier in identifiers.tolist():
            self._probes.pop(identifier, None)

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        """The types of args[], from the debug information of the file; None if it has none."""
        probe = self._probes[identifier]
        prototype = probe.program.types.function(probe.function) if probe.name in (ENTRY, RETURN) else None
        if probe.name == RETURN:
            return tuple(_returned(prototype))
        if prototype is None or prototype.parameters is None:
            return None if probe.name == ENTRY else ()
        return tuple(map(Argument, prototype.parameters))

    def argument(self, firing: Firing, index: int) -> int:
        """arg0, arg1, ... at the site of the firing."""
        return firing.enabling.argument(firing, index)

    def _reached(self, identifier: int, probe: _Probe, site: ProgramSite, action: Action) -> Reached:
        argument: Callable[[Firing, int], int] = _nothing
        if probe.name == ENTRY:
            argument = self._at_entry
        elif probe.name == RETURN:
            argument = partial(_at_return, self._arch.return_value, site.flow)
        enabling = Enabling(identifier, action, argument, site.address - site.start)
        if probe.name == RETURN and site.flow in _CONDITIONAL and site.is_emulated:
            return partial(_leaving, enabling, site, self._emulator.emulation(site.kind, site.code), self._arch.pc)
        return lambda firing, _address: firing.fire(enabling)


def _leaving(enabling: Enabling, site: ProgramSite, emulation: Emulation, pc: int, firing: Firing, at: int) -> None:
    """Let a return probe fire at a jump that leaves its function, if it does."""
    try:
        target = emulation.foreseen(firing.frame, pc)[-1] - (at - site.address)
    except PageFault:  # what it reads is not there yet: it will begin again
        return
    if not site.start <= target < site.start + site.size:
        firing.fire(enabling)


def _at_return(register: int, flow: Flow, firing: Firing, index: int) -> int:
    if index == 0:
        return firing.enabling.offset
    if index != _VALUE:
        return 0
    if flow is not Flow.RETURN:
        raise Fault(FaultKind.ILLOP, text=_TAIL_CALL)
    return firing.regs[register]


def _nothing(_firing: Firing, _index: int) -> int:
    """An instruction has no arguments."""
    return 0


def _returned(prototype: Function | None) -> Iterator[Argument]:
    yield Argument("int")
    if prototype is not None and not isinstance(strip(prototype.result), Void):
        yield Argument(prototype.result)
