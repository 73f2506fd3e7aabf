"""A run that is over: why it ended, where each CPU is, and which unsupported instructions the guest executed."""

from enum import Enum
from typing import Any

from kinst.runtime.machine.configuration import End
from kinst.targets.errors import GuestError
from kinst.targets.values import dataclass

Outcome = End | BaseException  # how a run ended


class CpuState(Enum):
    """What a CPU is doing."""

    RUNS = "runs"
    WAITS = "waits for an interrupt"
    OFF = "is off"


@dataclass(frozen=True, slots=True)
class CpuPlace:
    """Where a CPU is. The address is in the original code; a CPU that is off has none."""

    cpu: int
    state: CpuState
    address: int = 0
    symbol: str = ""
    instruction: str = ""

    def value(self) -> dict[str, Any]:
        """The place as a value for JSON."""
        where = {"address": hex(self.address), "symbol": self.symbol, "instruction": self.instruction}
        known = {} if self.state is CpuState.OFF else {name: text for name, text in where.items() if text}
        return {"cpu": self.cpu, "state": self.state.name.lower(), **known}

    def __str__(self) -> str:
        if self.state is CpuState.OFF:
            return f"CPU {self.cpu} {self.state.value}"
        return f"CPU {self.cpu} {self.state.value} at {self.where}"

    @property
    def where(self) -> str:
        """The address, with its symbol and its instruction."""
        symbol, instruction = self.symbol and f" ({self.symbol})", self.instruction and f": {self.instruction}"
        return f"{self.address:#x}{symbol}{instruction}"


@dataclass(frozen=True, slots=True)
class Stuck:
    """A guest that makes no progress."""

    place: CpuPlace
    what: str  # "spins", "faults again and again"
    why: str
    nothing: range | None  # physical addresses that it accesses, and where the machine has nothing
    machine: str

    def value(self) -> dict[str, Any]:
        """As a value for JSON."""
        value = {**self.place.value(), "what": self.what, "why": self.why}
        if self.nothing is not None:
            value["nothing-at"] = [hex(self.nothing.start), hex(self.nothing.stop)]
        return value

    def __str__(self) -> str:
        nothing = self.nothing
        there = f"; {self.machine} has nothing at {nothing.start:#x} to {nothing.stop:#x}" if nothing else ""
        return f"CPU {self.place.cpu} {self.what} at {self.place.where}; {self.why}{there}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    end: End | None  # None: it failed
    message: str = ""  # the error, if it failed
    failure: str = "error"  # the kind of error, in one word
    status: int = 0  # the exit status of kinst-run
    unmet: str = ""  # the expression of --until, if no line of the console had matched it
    places: tuple[CpuPlace, ...] = ()  # where each CPU is
    lacking: tuple[str, ...] = ()  # a sentence for each kind of unsupported instruction
    not_started: tuple[int, ...] = ()  # CPUs that the guest never switched on
    stuck: Stuck | None = None  # how it was found to make no progress
    assumed: tuple[str, ...] = ()  # a line for each register that nobody models: who touched it, what it was told
    missed: tuple[str, ...] = ()  # a line for each image that was to come, and did not
    passed_over: str = ""  # enabled sites where the guest has written what cannot be probed

    @property
    def reason(self) -> str:
        """The reason in one word."""
        return self.failure if self.end is None else self.end.value

    def value(self) -> dict[str, Any]:
        """How the run ended, as a value for JSON."""
        value: dict[str, Any] = {"reason": self.reason, "status": self.status}
        if self.message:
            value["message"] = self.message
        if self.unmet:
            value["until"] = self.unmet
        if self.places:
            value["cpus"] = [place.value() for place in self.places]
        if self.not_started:
            value["not-started"] = list(self.not_started)
        if self.stuck is not None:
            value["stuck"] = self.stuck.value()
        lists = {"lacking": self.lacking, "assumed": self.assumed, "missed": self.missed}
        value |= {name: list(lines) for name, lines in lists.items() if lines}
        if self.passed_over:
            value["passed-over"] = self.passed_over
        return value

    def lines(self, *, is_verbose: bool) -> list[str]:
        """The lines to print: where the CPUs are, if the run was stopped; why it ended, if `is_verbose`; and whatever
        is unusual. A guest that switched itself off, or met --until, needs no line."""
        lines = [f"{self.reason}: {place}" if self.end is not None else str(place) for place in self.places]
        if is_verbose and not lines:
            lines = [f"ended: {self.reason}"]
        if self.unmet:
            lines.append(f"--until {self.unmet}: no line of the console matched")
        if self.not_started:
            lines.append(f"the guest never started CPU {', '.join(map(str, self.not_started))}: it did not find it")
        if self.passed_over:
            lines.append(f"of the sites that the guest wrote over, {self.passed_over}")
        return [*lines, *self.lacking, *self.assumed, *self.missed]


def bare_ending(outcome: Outcome) -> Ending:
    """The ending of a run without a guest, or one with a guest of which nothing else is known."""
    match outcome:
        case End():
            return Ending(outcome)
        case GuestError():
            return Ending(None, str(outcome), outcome.reason, outcome.exit_code)
        case _:
            return Ending(None, str(outcome), status=1)
