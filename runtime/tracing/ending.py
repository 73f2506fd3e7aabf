"""A run that is over -> why, where each CPU is, and what the guest executed that no CPU of this machine has."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from kinst.rewriter.disassemble import disassemble
from kinst.runtime.clauses.environment import Symbols
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.cpu import VirtualCpu
from kinst.runtime.machine.loaded import Loaded
from kinst.runtime.machine.system import System
from kinst.targets.errors import MachineError

Outcome = End | BaseException  # of a run
_LONGEST: Final = 15  # bytes of an instruction
_WANTED = frozenset({End.TIMEOUT, End.WALL_TIMEOUT, End.INTERRUPTED, End.PANIC, End.BREAKPOINT})


class CpuState(Enum):
    """What a CPU does."""

    RUNS = "runs"
    WAITS = "waits for an interrupt"
    OFF = "is off"


@dataclass(frozen=True, slots=True)
class CpuPlace:
    """Where a CPU is. The address is the original code's; nothing is told of one that is off."""

    cpu: int
    state: CpuState
    address: int = 0
    symbol: str = ""
    instruction: str = ""

    def value(self) -> dict[str, Any]:
        """For JSON."""
        where = {"address": hex(self.address), "symbol": self.symbol, "instruction": self.instruction}
        known = {} if self.state is CpuState.OFF else {name: text for name, text in where.items() if text}
        return {"cpu": self.cpu, "state": self.state.name.lower(), **known}

    def __str__(self) -> str:
        if self.state is CpuState.OFF:
            return f"CPU {self.cpu} {self.state.value}"
        symbol, instruction = self.symbol and f" ({self.symbol})", self.instruction and f": {self.instruction}"
        return f"CPU {self.cpu} {self.state.value} at {self.address:#x}{symbol}{instruction}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. `end` is None where it failed; `message` says how then."""

    end: End | None
    message: str = ""
    places: tuple[CpuPlace, ...] = ()
    lacking: tuple[str, ...] = ()  # sentences, one for each kind of instruction
    not_started: tuple[int, ...] = ()  # CPUs that the guest never switched on
    passed_over: str = ""  # enabled sites at which the guest wrote what cannot be probed

    @property
    def reason(self) -> str:
        """One word for it."""
        return "error" if self.end is None else self.end.value

    def value(self) -> dict[str, Any]:
        """The same for JSON."""
        value: dict[str, Any] = {"reason": self.reason}
        if self.message:
            value["message"] = self.message
        if self.places:
            value["cpus"] = [place.value() for place in self.places]
        if self.not_started:
            value["not-started"] = list(self.not_started)
        if self.lacking:
            value["lacking"] = list(self.lacking)
        if self.passed_over:
            value["passed-over"] = self.passed_over
        return value

    def lines(self, *, is_verbose: bool) -> list[str]:
        """What to say: always where the CPUs are if they were stopped, the rest if it is asked for."""
        lines = [f"{self.reason}: {place}" if self.end is not None else str(place) for place in self.places]
        if is_verbose and not lines:
            lines = [f"ended: {self.reason}"]
        if self.not_started:
            lines.append(f"the guest never started CPU {', '.join(map(str, self.not_started))}: it did not find it")
        if self.passed_over:
            lines.append(f"of the sites that the guest wrote over, {self.passed_over}")
        return [*lines, *self.lacking]


def bare_ending(outcome: Outcome) -> Ending:
    """Where there is no guest, or nothing to tell of it."""
    return Ending(outcome) if isinstance(outcome, End) else Ending(None, str(outcome))


class Whereabouts:
    """The CPUs of a machine that does not run."""

    def __init__(self, system: System, loaded: Loaded, symbols: Symbols) -> None:
        """`symbols` are those of the running image."""
        self._system = system
        self._loaded = loaded
        self._symbols = symbols

    def ending(self, outcome: Outcome, *, is_verbose: bool) -> Ending:
        """The run is over: what there is to tell of it."""
        is_wanted = self._system.has_run and (isinstance(outcome, MachineError) or outcome in _WANTED)
        places = tuple(map(self._place, self._system.cpus)) if is_wanted else ()
        lacking = tuple(self._lacking()) if is_wanted or is_verbose else ()
        never = tuple(cpu.number for cpu in self._system.cpus if not cpu.was_started)
        return replace(bare_ending(outcome), places=places, lacking=lacking, not_started=never)

    def _place(self, cpu: VirtualCpu) -> CpuPlace:
        if not cpu.is_on:
            return CpuPlace(cpu.number, CpuState.OFF)
        system = self._system
        system.show(cpu.number)
        address = system.trap.original(system.engine.pc())
        state = CpuState.WAITS if cpu.is_waiting else CpuState.RUNS
        return CpuPlace(cpu.number, state, address, self._symbol(address), self._text(address, self._code(address)))

    def _code(self, address: int) -> bytes:
        """As the CPU sees it, or what was loaded there if its translation tables are what failed."""
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
        """By the address itself, or by what is loaded where the CPU's tables say that it is."""
        found = self._symbols.describe(address, "stack")
        if "`" in found:
            return found
        physical = self._system.space.observe(address)
        for virtual, start, size in self._loaded.segments:
            if physical is not None and 0 <= physical - start < size:
                found = self._symbols.describe(virtual + physical - start, "stack")
                return found if "`" in found else ""
        return ""

    def _lacking(self) -> Iterator[str]:
        """One sentence a kind; the first of each has its place."""
        told = set()
        for address, code in self._system.undefined.items():
            why = self._system.exceptions.lacks(self._system.current, code, self._text(address, code))
            if why is not None and why not in told:
                told.add(why)
                symbol = self._symbol(address)
                yield f"{why}: the guest executed it at {address:#x}{symbol and f' ({symbol})'}"
