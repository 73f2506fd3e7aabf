"""trap: each exception and interrupt that a CPU takes, `trap:exception|interrupt:NAME:entry`.

NAME is that of the machine's manual: `data-abort`, `page-fault`, `supervisor-timer`. A probe fires before the handler
begins: registers, the stack and the thread are those of the interrupted code.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from kinst.runtime.machine.exception_model import Taken, TakenWatcher
from kinst.runtime.providers.provider import Argument, Probes, Registration
from kinst.runtime.providers.stability import EVOLVING, EVOLVING_ISA, ProviderAttributes
from kinst.runtime.providers.watching_provider import WatchingProvider
from kinst.runtime.trap.trap import Firing
from kinst.targets.probe import ProbeName

_MODULES: Final = ("exception", "interrupt")
_ENTRY: Final = "entry"
_ARGUMENTS: Final = tuple(map(Argument, ("uint32_t", "uint64_t", "uint64_t", "uint64_t")))


class TrapHost(Protocol):
    """What the provider needs from the run."""

    @property
    def exceptions(self) -> Iterable[tuple[bool, str]]:
        """The names of what the machine's CPUs take, with whether they are interrupts."""
        ...

    def watch_taken(self, watcher: TakenWatcher) -> None:
        """Call `watcher` with each from now on, before it is taken."""
        ...

    def unwatch_taken(self, watcher: TakenWatcher) -> None:
        """Call it no more."""
        ...

    def name_of(self, taken: Taken) -> str:
        """Its name, one of `exceptions`."""
        ...

    def excepting(self, pc: int) -> Firing:
        """A firing for what is about to be taken, with this PC."""
        ...


class TrapProvider(WatchingProvider):
    """The provider `trap`; implements `kinst.runtime.providers.provider.Provider`."""

    registration = Registration("trap", ProviderAttributes(EVOLVING, EVOLVING, EVOLVING_ISA, EVOLVING, EVOLVING_ISA))

    def __init__(self, host: TrapHost) -> None:
        """Nothing is enabled, and nothing watched."""
        super().__init__(lambda: host.watch_taken(self._taken), lambda: host.unwatch_taken(self._taken))
        self._host = host
        self._identifiers: dict[tuple[bool, str], int] = {}

    def provide(self, probes: Probes, wanted: ProbeName | None) -> None:
        """Create all of them when it registers."""
        if wanted is None:
            for is_interrupt, name in self._host.exceptions:
                self._identifiers[is_interrupt, name] = probes.create(_MODULES[is_interrupt], name, _ENTRY)

    def arguments(self, identifier: int) -> Sequence[Argument]:
        """The number, the address, the syndrome, and the PC."""
        return _ARGUMENTS

    def _taken(self, taken: Taken) -> None:
        enabling = self._enablings.get(self._identifiers[taken.is_interrupt, self._host.name_of(taken)])
        if enabling is not None:
            self._values = taken.number, taken.address, taken.syndrome, taken.pc
            self._host.excepting(taken.pc).fire(enabling)
