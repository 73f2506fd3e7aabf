"""A guest that stopped -> where each CPU is, and which unsupported instructions it executed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kinst.rewriter.disassemble import disassemble
from kinst.runtime.clauses.environment import Symbols
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.loading.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.runtime.machine.unclaimed import nothing_at
from kinst.runtime.tracing.host.ending import CpuPlace, CpuState, Ending, Outcome, bare_ending
from kinst.targets.errors import MachineError

_LONGEST: Final = 15  # bytes of an instruction
_WANTED = frozenset({End.TIMEOUT, End.WALL_TIMEOUT, End.INTERRUPTED, End.PANIC, End.BREAKPOINT, End.GUEST_PANIC})


class Whereabouts:
    """Where the CPUs of a stopped machine are."""

    def __init__(self, system: System, loaded: Loaded, symbols: Symbols) -> None:
        """`symbols` are those of the running image."""
        self._system = system
        self._loaded = loaded
        self._symbols = symbols

    def ending(self, outcome: Outcome, *, is_verbose: bool) -> Ending:
        """What is known about the end of the run."""
        is_wanted = self._system.has_run and (isinstance(outcome, MachineError) or outcome in _WANTED)
        places = self.places() if is_wanted else ()
        lacking = tuple(self._lacking()) if is_wanted or is_verbose else ()
        if is_wanted and isinstance(outcome, MachineError):
            lacking += tuple(self._nothing_there())
        never = tuple(cpu.number for cpu in self._system.cpus if not cpu.was_started)
        return replace(bare_ending(outcome), places=places, lacking=lacking, not_started=never)

    def places(self) -> tuple[CpuPlace, ...]:
        """Where each CPU is, between two turns. The engine is left with the state of the last one."""
        return tuple(map(self._place, self._system.cpus))

    def _place(self, cpu: VirtualCpu) -> CpuPlace:
        if not cpu.is_on:
            return CpuPlace(cpu.number, CpuState.OFF)
        system = self._system
        system.show(cpu.number)
        return self.at(cpu, system.engine.pc())

    def at(self, cpu: VirtualCpu, address: int) -> CpuPlace:
        """The place of a CPU that is at an address: its symbol and instruction, as the running CPU sees them."""
        address = self._system.trap.original(address)
        state = CpuState.WAITS if cpu.is_waiting else CpuState.RUNS
        return CpuPlace(cpu.number, state, address, self._symbol(address), self._text(address, self._code(address)))

    def function(self, address: int) -> str:
        """The symbol of an address, as the running CPU sees it; without one, the address."""
        return self._symbol(self._system.trap.original(address)) or f"{address:#x}"

    def is_loaded(self, address: int) -> bool:
        """Whether an address is, for the CPU that runs, in what was loaded."""
        physical = self._system.space.observe(address)
        return any(physical is not None and 0 <= physical - start < size for _, start, size in self._loaded.segments)

    def _code(self, address: int) -> bytes:
        """The code at an address as the CPU sees it; if its page tables do not map it, what was loaded there."""
        code = self._system.instruction(address)
        for virtual, physical, size in () if code else self._loaded.segments:
            left = virtual + size - address
            if 0 < left <= size:
                content = self._system.memory.read(physical + size - left, min(left, _LONGEST))
                return self._system.pristine(address, content)
        return code

    def _text(self, address: int, code: bytes) -> str:
        """The first instruction of `code`."""
        lines = disassemble(self._system.arch, code, address) if code else []
        return lines[0].text if lines and self._system.exceptions.is_native(self._system.current) else ""

    def _symbol(self, address: int) -> str:
        """The symbol of an address, or of what was loaded at the physical address to which the CPU translates it."""
        found = self._symbols.describe(address, "stack")
        if "`" in found:
            return found
        physical = self._system.space.observe(address)
        for virtual, start, size in self._loaded.segments:
            if physical is not None and 0 <= physical - start < size:
                found = self._symbols.describe(virtual + physical - start, "stack")
                return found if "`" in found else ""
        return ""

    def _nothing_there(self) -> Iterator[str]:
        """The physical addresses of the last fault, if the machine has neither RAM nor a device there."""
        system, fault = self._system, self._system.progress.last
        address = None if fault is None else fault.address
        nothing = nothing_at(address, system.space, system.facts, system.memory)
        if nothing is not None:
            yield f"{system.facts.name} has nothing at {nothing.start:#x} to {nothing.stop:#x}"

    def _lacking(self) -> Iterator[str]:
        """One sentence for each kind of unsupported instruction, with the address of the first."""
        reported = set()
        for address, code in self._system.events.undefined.items():
            why = self._system.exceptions.lacks(self._system.current, code, self._text(address, code))
            if why is not None and why not in reported:
                reported.add(why)
                symbol = self._symbol(address)
                yield f"{why}: the guest executed it at {address:#x}{symbol and f' ({symbol})'}"
