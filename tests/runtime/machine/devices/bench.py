"""A clock that stands still and a line that remembers, for device tests."""

from dataclasses import dataclass, field


@dataclass
class StillClock:
    time: int = 0

    def now(self) -> int:
        return self.time


@dataclass
class Wire:
    """An interrupt line: its level and how often it rose."""

    level: bool = False
    rises: int = 0
    history: list[bool] = field(default_factory=list)

    def __call__(self, level: bool) -> None:  # noqa: FBT001 - the form of every line
        if level and not self.level:
            self.rises += 1
        self.level = level
        self.history.append(level)
