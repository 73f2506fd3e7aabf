"""All that a tracer knows of the guest: its machine, memory, symbols and operating system, or what replaces them."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Protocol

from kinst.runtime.clauses.environment import GuestProfile, Memory, Stacks, Symbols, UserStacks, UserSymbols
from kinst.runtime.clauses.guest.no_guest import NoStacks, NoSymbols, NoUserSymbols
from kinst.runtime.clauses.profiles import BareProfile
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.dlang.program import Clause
from kinst.runtime.hits.combining import Replays
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.provider import Identifiers, Providers
from kinst.runtime.tracing.host.contract import Host, Snapshotted
from kinst.runtime.trap.delivery import Delivery
from kinst.runtime.trap.trap import Firing
from kinst.targets.values import dataclass

Admit = Callable[[Clause, Identifiers, Delivery], None]  # clause, its probes, how its hits are delivered
SCRATCH: Final = 16 << 20  # bytes that one clause may use


def _all(_clause: Clause, _probes: Identifiers, _delivery: Delivery) -> None:
    """Clauses may read anything."""


def _where_linked(link: int, _site: int) -> int:
    """Nothing was moved."""
    return link


def _nothing() -> None:
    """There are no sites."""


def _no_debugger() -> bool:
    """There is none."""
    return False


def _nobody(_firing: Firing) -> int:
    """No process is meant."""
    return -1


def _never(_call: Callable[[], None]) -> None:
    """No debugger will stop the guest."""


class Repeatable(Protocol):
    """What traces a guest that does something again: `kinst.runtime.tracing.host.listening.Listening`."""

    @property
    def destructive(self) -> tuple[str, ...]:
        """The functions and actions of its clauses that change more than what is recorded."""

    def pause(self) -> None:
        """What comes until `go_on` was traced already."""

    def go_on(self) -> None:
        """What comes now was not."""


def _not_again(_traced: Repeatable) -> None:
    """No debugger will take the guest back."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What clauses can see besides their own program, and what makes their probes fire. The defaults are those of a run
    without a guest."""

    host: Host
    providers: Providers
    dtrace: DtraceProvider
    scratch: Scratch
    memory: Memory
    stacks: Stacks = field(default_factory=NoStacks)
    user_stacks: UserStacks = field(default_factory=NoStacks)
    symbols: Symbols = field(default_factory=NoSymbols)
    user_symbols: UserSymbols = field(default_factory=NoUserSymbols)
    locate: Callable[[int, int], int] = _where_linked  # a link address, for the code at another -> where it is now
    locate_beside: Mapping[str, Callable[[int, int], int]] = field(default_factory=dict)  # of other images, by module
    profile: GuestProfile = field(default_factory=lambda: BareProfile(""))
    target: Callable[[Firing], int] = _nobody  # what `$target` is, where --exec says who that is
    # Lets actions change the CPU at probes of its code, from now on; a text: why that is impossible.
    intervene: Callable[[], None] | str = "there is no guest"
    arm: Callable[[], None] = _nothing  # writes the breakpoints of what is enabled into memory
    fold: Callable[[], None] = _nothing  # runs the actions of hits that were counted or recorded
    admit: Admit = _all  # raises KinstError for a clause that reads what is not recorded of hits
    timestamp: Callable[[], int] | None = None  # what clauses see as time (ns), if it is not the host's
    replays: Replays | None = None  # None: nothing is replayed
    take_drops: Callable[[], Mapping[int, int]] = dict  # hits that were lost since the last time, by CPU
    # stop(): pauses the guest; returns how it can go on, empty if it is paused already. None: there is no such thing.
    stop: Callable[[], str] | None = None
    # breakpoint(): stops the guest for a debugger, and says whether one is there. Else the run ends.
    debug: Callable[[], bool] = _no_debugger
    snapshots: Snapshotted | None = None  # of the guest; None: it has none
    on_stop: Callable[[Callable[[], None]], None] = _never  # calls what it is given when a debugger has the guest
    repeats: Callable[[Repeatable], None] = _not_again  # is given what a guest that a debugger takes back tells of that
