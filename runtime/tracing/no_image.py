"""Programs without an image: what they are compiled against, and a machine on which only time passes."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from kinst.runtime.clauses.guest.guest_memory import no_guest
from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.dlang.builtins import FREEBSD
from kinst.runtime.machine.configuration import ClockKind, End
from kinst.runtime.providers.dtrace import DtraceProvider
from kinst.runtime.providers.profile import ProfileProvider
from kinst.runtime.providers.provider import Providers
from kinst.runtime.tracing.host.contract import NoGuest
from kinst.runtime.tracing.host.ending import Ending, Outcome, bare_ending
from kinst.runtime.tracing.host.limits import Limits
from kinst.runtime.tracing.host.surroundings import SCRATCH, Surroundings
from kinst.runtime.tracing.request import Request
from kinst.targets.arch.registry import NO_IMAGE_ARCH
from kinst.targets.c_types import NoImageTypes
from kinst.targets.errors import UsageError


class NoImage:
    """No image; implements `kinst.runtime.tracing.subject.Subject`."""

    guest = None
    covered = None
    constants = FREEBSD
    inlines = None
    providers = ()
    refusals = ()

    def __init__(self, request: Request) -> None:
        self.programs = request.programs
        self.arch = NO_IMAGE_ARCH
        self.types = NoImageTypes()
        self._clock = request.configuration.clock

    def objects(self) -> NoReturn:
        """See `Subject`. Raises UsageError."""
        raise UsageError("typed values: there is no image whose types they could have")

    def load(self, descriptions: Sequence[str], warn: Callable[[str], None]) -> "Idle":
        """See `Subject`."""
        return Idle(self._clock)

    def reason(self, description: str) -> str:
        """Empty: nothing could have been patched."""
        return ""


class Idle:
    """A machine on which only time passes; implements `kinst.runtime.tracing.running.Traced`."""

    has_guest = False
    keyboard = None
    exit_code = 0
    answer = ""

    def __init__(self, clock: ClockKind) -> None:
        host = NoGuest(clock)
        dtrace = DtraceProvider()
        scratch = Scratch(SCRATCH)
        self._machine = host.machine
        self.surroundings = Surroundings(
            host=host,
            providers=Providers([dtrace, ProfileProvider(host)]),
            dtrace=dtrace,
            scratch=scratch,
            memory=no_guest(scratch),
        )

    def go(self, limits: Limits, console: Callable[[bytes], None], after_turn: Callable[[], None]) -> End:
        """Wait for timers until something ends the run."""
        return self._machine.run(after_turn, limits.timeout, limits.wall_timeout)

    def ending(self, outcome: Outcome) -> Ending:
        """The ending of a run without a guest."""
        return bare_ending(outcome)
