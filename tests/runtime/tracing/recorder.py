"""A consumer that keeps what it is given."""

from collections import Counter
from dataclasses import dataclass, field

from kinst.runtime.trap.trap import Firing


@dataclass
class Recorder:
    """See `kinst.runtime.tracing.session.Consumer`."""

    output: bytearray = field(default_factory=bytearray)  # the guest's console
    counts: Counter[int] = field(default_factory=Counter)
    arguments: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # probe, arg0 to arg4
    keeps_arguments: bool = True

    def begin(self, *, with_header: bool) -> None:
        assert with_header in (False, True)

    def fired(self, firing: Firing) -> None:
        self.counts[firing.enabling.probe] += 1
        if self.keeps_arguments:
            self.arguments.append((firing.enabling.probe, tuple(firing.argument(index) for index in range(5))))

    def console(self, data: bytes) -> None:
        self.output += data

    def flush(self) -> None:
        pass

    def end(self) -> None:
        pass
