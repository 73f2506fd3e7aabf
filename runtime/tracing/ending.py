"""A run that is over: why, where each CPU is, and what the guest executed that no CPU of this machine has."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from kinst.runtime.machine.configuration import End

Outcome = End | BaseException  # of a run


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
