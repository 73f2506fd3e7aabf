"""usdt: the static probes of programs and libraries of the guest's user space.

`usdt:/usr/bin/python3.11:python:function-entry`, as bpftrace spells it: program, then the provider and the name that
its author gave. systemtap's <sys/sdt.h> makes them: a nop, and a note in the file that says where the arguments are.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from pathlib import PurePosixPath

from kinst.runtime.providers.operands import Operands
from kinst.runtime.providers.probe_table import Identifiers
from kinst.runtime.providers.provider import Action, Argument, Probes, ProviderError, Registration
from kinst.runtime.providers.stability import EVOLVING, PRIVATE, ProviderAttributes
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.userspace.enabled_sites import EnabledSites
from kinst.runtime.userspace.guest_files import GIVEN, GuestFile, GuestFiles
from kinst.runtime.userspace.program_notes import NotedSite, ProgramNotes
from kinst.runtime.userspace.user_code import Reached, UserCode
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.probe import ProbeName, is_glob
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class _Probe:
    """One probe, and where it fires."""

    guest_file: GuestFile
    program: ProgramNotes
    sites: tuple[NotedSite, ...] = field(default=())


class UsdtProvider:
    """See `kinst.runtime.providers.provider.Provider`."""

    registration = Registration(
        "usdt",
        ProviderAttributes(EVOLVING, PRIVATE, PRIVATE, EVOLVING, EVOLVING),
        needs="the path of a program in the guest, in its second field: usdt:/usr/bin/python3:python:gc-start; the "
        "file is that of --initrd, or of --user",
    )

    def __init__(self, code: UserCode, files: GuestFiles, arch: ArchFacts) -> None:
        """No probe yet, and nothing is watched."""
        self._code, self._files, self._arch = code, files, arch
        self._enabled = EnabledSites(code)
        self._program = cache(lambda file: ProgramNotes(file.file, PurePosixPath(file.module).name, arch, file.names))
        self._probes: dict[int, _Probe] = {}

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create the probes of a program that is named. Raises KinstError: its file cannot be read, or Linux not be
        followed."""
        if wanted is None or not wanted.module:
            return
        for file in self._files.find(wanted.module):
            obstacle = self._code.obstacle()
            if obstacle:
                raise ProviderError(f"usdt:{wanted.module}: {obstacle}")
            program = self._program(file)
            for function, name, sites in program.find(wanted.function, wanted.name):
                if probes.lookup(file.module, function, name) is None:
                    self._probes[probes.create(file.module, function, name)] = _Probe(file, program, sites)

    def why_not(self, wanted: ProbeName) -> str:
        """See `ExplainsMisses`."""
        if not wanted.module:
            return f"it needs {self.registration.needs}"
        files = list(self._files.find(wanted.module))
        if not files:
            return f"no program or library {wanted.module} in --initrd; {GIVEN}"
        if is_glob(wanted.module):
            return ""
        return f"{wanted.module}: {self._program(files[0]).why(wanted.function, wanted.name)}"

    def enable(self, identifiers: Identifiers, action: Action) -> None:
        """Watch what the probes are of."""
        self.disable(identifiers)
        for identifier in identifiers.tolist():
            probe = self._probes[identifier]
            sites = [(probe.guest_file, site, self._reached(identifier, probe, site, action)) for site in probe.sites]
            self._enabled.enable(identifier, sites)

    def disable(self, identifiers: Identifiers) -> None:
        """Watch it no more."""
        self._enabled.disable(identifiers.tolist())

    def destroy(self, identifiers: Identifiers) -> None:
        """Forget these probes."""
        for identifier in identifiers.tolist():
            self._probes.pop(identifier, None)

    def arguments(self, identifier: int) -> Sequence[Argument] | None:
        """The types of args[]: size and sign, as the first place has them."""
        return tuple(map(Argument, self._probes[identifier].sites[0].types))

    def argument(self, firing: Firing, index: int) -> int:
        """arg0, arg1, ... read from the operands of the place."""
        return firing.enabling.argument(firing, index)

    def _reached(self, identifier: int, probe: _Probe, site: NotedSite, action: Action) -> Reached:
        enabling = cache(lambda bias: Enabling(identifier, action, self._operands(probe.program, site, bias), 0))
        return lambda firing, address: firing.fire(enabling(address - site.address))

    def _operands(self, program: ProgramNotes, site: NotedSite, bias: int) -> Callable[[Firing, int], int]:
        """The arguments at a place of a program that is `bias` bytes from where it was linked."""

        def find(name: str) -> int | None:
            address = program.symbol(name)
            return None if address is None else address + bias

        return Operands(self._arch, find).compile(site.operands)
