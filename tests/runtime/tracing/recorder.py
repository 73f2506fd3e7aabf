"""An action of probes that keeps what it is told."""

from collections import Counter
from dataclasses import dataclass, field

from kinst.runtime.tracing.hits import Hit


@dataclass
class Recorder:
    """Hits by the probe's identifier and by its name; arg0 to arg4 of each."""

    counts: Counter[int] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    arguments: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # probe, arg0 to arg4
    keeps_arguments: bool = True

    def fired(self, hit: Hit) -> None:
        self.counts[hit.identifier] += 1
        self.names[str(hit.probe)] += 1
        if self.keeps_arguments:
            self.arguments.append((hit.identifier, tuple(hit.argument(index) for index in range(5))))
