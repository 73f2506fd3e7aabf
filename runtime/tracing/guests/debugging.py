"""The debugger's door of --gdb: made for a guest, with the monitor commands that know its probes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kinst.runtime.debugger.address import DebuggerAddress
from kinst.runtime.debugger.debugger import Debugger, Notices
from kinst.runtime.debugger.monitor import Monitor, MonitorCommand
from kinst.runtime.machine.system import System
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.guests.rewinding import Rewinding
from kinst.runtime.tracing.guests.snapshotting import GuestSnapshots
from kinst.runtime.tracing.host.surroundings import Surroundings
from kinst.runtime.tracing.snapshots.reading import header_of
from kinst.targets.errors import UsageError

if TYPE_CHECKING:
    from kinst.runtime.machine.loading.loaded import Loaded
    from kinst.runtime.patched.sites import SiteTable

_MOST: Final = 50  # probes in a list


class Debugging:
    """The debugger of one guest, which tells of stops once somebody listens."""

    def __init__(
        self,
        address: DebuggerAddress,
        system: System,
        loaded: "Loaded",
        warn: Callable[[str], None],
        rewinding: Rewinding,
        snapshots: GuestSnapshots,
    ) -> None:
        """The door is closed until the run begins."""
        self._rewinding, self._snapshots = rewinding, snapshots
        self._system, self._bias = system, loaded.bias
        self._on_stop: list[Callable[[], None]] = []
        self.debugger = Debugger(system, loaded, address, Notices(warn, self._stopped), rewinding)

    def joined(self, surroundings: Surroundings) -> Surroundings:
        """What clauses can see, with the debugger: its door is opened when the run begins."""

        def arm() -> None:
            surroundings.arm()
            self.debugger.open()

        return replace(surroundings, arm=arm, debug=self.stop, on_stop=self.watch, repeats=self._rewinding.know)

    def watch(self, stopped: Callable[[], None]) -> None:
        """Call `stopped` when the guest has stopped for the debugger."""
        self._on_stop.append(stopped)

    def stop(self) -> bool:
        """breakpoint() of a clause: stop, and say whether a debugger is there."""
        if self.debugger.is_there:
            self.debugger.ask()
        return self.debugger.is_there

    def know(self, providers: Providers, sites: "SiteTable | None") -> None:
        """Give the debugger the commands of its monitor."""
        probes = _ProbeCommands(providers, sites, self._bias, self.debugger.points.break_once)
        commands = {
            "info": MonitorCommand(self._info, "the time, and what each CPU does"),
            "probes": MonitorCommand(probes.listed, "the probes that are enabled"),
            "continue-to": MonitorCommand(probes.go_to, "stop at that probe, when the guest goes on", "PROBE"),
            "snapshot": MonitorCommand(self._snapshot, "write a snapshot, for --from", "FILE"),
            "phys": MonitorCommand(self._physical, "take addresses as physical ones, or not", "on|off"),
        }
        self.debugger.know(Monitor(commands))

    def _stopped(self) -> None:
        for call in self._on_stop:
            call()

    def _info(self, _rest: str) -> str:
        lines = [f"time: {self._system.clock.now():,} ns, {self.debugger.executed:,} instructions"]
        for cpu in self._system.cpus:
            state = "off" if not cpu.is_on else "waits for an interrupt" if cpu.is_waiting else "runs"
            is_here = " (in the engine)" if cpu is self._system.current else ""
            lines.append(f"CPU {cpu.number}: {state}{is_here}")
        return "\n".join([*lines, f"backwards: {self._rewinding.why_not() or 'yes'}"])

    def _snapshot(self, rest: str) -> str:
        """Whoever is connected may make files, but replace none that is no snapshot."""
        path = Path(rest)
        if not rest:
            raise UsageError("snapshot: to which file?")
        if path.exists():
            header_of(path)
        self._snapshots.check()
        self._snapshots.write_here(path)
        return f"{path.absolute()}: has the guest at {self._system.clock.now():,} ns"

    def _physical(self, rest: str) -> str:
        if rest not in ("on", "off"):
            raise UsageError("phys: on or off")
        self.debugger.be_physical(is_wanted=rest == "on")
        return f"addresses are {'physical' if rest == 'on' else 'virtual'}"


class _ProbeCommands:
    """What is said of probes, and done with them."""

    def __init__(
        self, providers: Providers, sites: "SiteTable | None", bias: int, break_once: Callable[[int], None]
    ) -> None:
        self._providers, self._sites, self._bias, self._break_once = providers, sites, bias, break_once

    def listed(self, _rest: str) -> str:
        """The probes that are enabled, with their addresses."""
        enabled = self._providers.enabled
        lines = []
        for identifier in enabled[:_MOST].tolist():
            places = " ".join(f"{address:#x}" for address in self._addresses(identifier))
            lines.append(f"{identifier:8} {self._providers.probe(identifier)} {places}".rstrip())
        if len(enabled) > _MOST:
            lines.append(f"and {len(enabled) - _MOST:,} more")
        return "\n".join(lines) or "no probe is enabled"

    def go_to(self, rest: str) -> str:
        """Stop once where a probe fires."""
        if not rest:
            raise UsageError("continue-to: which probe? monitor probes lists those that are enabled")
        places = [
            (identifier, address)
            for identifier in self._providers.described(rest)[:_MOST].tolist()
            for address in self._addresses(identifier)
        ]
        if not places:
            raise UsageError(f"continue-to {rest}: no site of this run is at such a probe: use gdb's own break")
        lines = []
        for identifier, address in places:
            self._break_once(address)
            lines.append(f"the guest stops at {self._providers.probe(identifier)} ({address:#x}) when it goes on")
        return "\n".join(lines)

    def _addresses(self, identifier: int) -> list[int]:
        """Where a probe's sites are; empty if it has none."""
        sites = self._sites
        if sites is None or identifier not in sites.identifiers:
            return []
        row = int(sites.rows_of(np.array([identifier]))[0])
        enablings = sites.manifest.enablings
        found = enablings["site"][enablings["probe"] == row]
        return [int(address) + self._bias for address in sites.manifest.sites["address"][found].tolist()]
