"""What became of a call."""

from dataclasses import field

from kinst.runtime.machine.configuration import End
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Called:
    """The outcome of a call. Without a result, `end` or `error` says why there is none."""

    result: int | None  # 64 unsigned bits
    end: End | None  # None: the machine cannot go on, and `error` says why
    error: str = ""  # what the machine cannot do
    hits: dict[int, int] = field(default_factory=dict)  # by identifier of a probe: how often it fired
    pc: int | None = None  # where it did what is an error
    what: str = ""  # and what that is
    where: str = ""  # the same place by its symbol
    instructions: int | None = None  # that were executed; None: with the host's clock they are not counted
    nanoseconds: int = field(default=0, compare=False)  # of the host's time

    @property
    def reason(self) -> str:
        """How it ended, in one word: "returned", "fault", "timeout" and so on."""
        return "fault" if self.end is None else self.end.value
