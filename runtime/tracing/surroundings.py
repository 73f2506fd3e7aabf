"""What a tracer stands in: a guest's machine, or none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kinst.runtime.clauses.environment import GuestProfile, Memory, Stacks, Symbols
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.host import Host

SCRATCH: Final = 16 << 20  # bytes that one clause may use


class Threads(Protocol):
    """What stands for the guest's threads: `kinst.runtime.unwinding.contexts.Contexts`."""

    @property
    def description(self) -> str:
        """What keys self-> variables."""
        ...

    def begin(self, forget: Callable[[int], None]) -> None:
        """Watch, and say which keys have no thread any more."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What clauses can see besides their own program, and what fires their probes."""

    host: Host
    providers: Providers
    dtrace: DtraceProvider
    scratch: Scratch
    memory: Memory
    stacks: Stacks
    symbols: Symbols
    locate: Callable[[int, int], int]  # a link address, for the code at another address -> where it is now
    profile: GuestProfile
    contexts: Threads | None  # whose self-> variables are; None: the CPU's, without a guest
    arm: Callable[[], None]  # let memory have the breakpoints of what is enabled
