"""stop(), raise(), breakpoint(), panic() and chill() of a program -> their effect, and notices about it."""

from collections.abc import Callable, Iterable
from typing import Final

from kinst.runtime.clauses.environment import Symbols
from kinst.runtime.dlang.options import Options
from kinst.runtime.dlang.program import Program
from kinst.runtime.machine.configuration import End
from kinst.runtime.providers.provider import Probe
from kinst.runtime.tracing.host.contract import Host
from kinst.runtime.tracing.interventions import OVERRIDE, why_not
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.targets.errors import KinstError

_CHILL_INTERVAL: Final = 1_000_000_000  # ns
_MOST_CHILLED: Final = 500_000_000  # ns within an interval


def check_allowed(programs: Iterable[Program], options: Options) -> None:
    """Raise KinstError if a program has destructive actions and there is no -w."""
    destructive = next((name for program in programs for name in program.destructive), "")
    if destructive and not options.is_on("destructive"):
        what = destructive if destructive.endswith("]") else f"{destructive}()"
        raise KinstError(f"could not enable tracing: Destructive actions not allowed: {what} needs -w")


class DestructiveActions:
    """The destructive actions of one run."""

    def __init__(
        self,
        host: Host,
        probe: Callable[[int], Probe | None],
        symbols: Symbols,
        stop: Callable[[], str] | None = None,
        debug: Callable[[], bool] = lambda: False,
    ) -> None:
        """`probe` and `symbols` are for the notices; `stop` and `debug` pause the guest: see `Surroundings`."""
        self._host, self._probe, self._symbols, self._stop, self._debug = host, probe, symbols, stop, debug
        self._notices: list[str] = []  # those not reported yet
        self._noticed: set[tuple[str, int]] = set()
        self._chilled: dict[int, tuple[int, int]] = {}  # CPU -> start of its interval, and ns chilled since then

    def perform(self, firing: Firing, kind: str, argument: int) -> None:
        """Perform an action: stop pauses the guest, where that is possible, and raise has no process to act on;
        breakpoint stops the guest for a debugger, if one is there; else it ends the run, as panic does; chill lets time
        pass; override and skip: see `Interventions`.

        Raises:
            Fault: ILLOP: chill() takes too long, or the CPU cannot be changed there; BADADDR: no return address.
        """
        match kind:
            case "override" | "skip":
                self._intervene(firing, f"{kind}()", argument)
            case "chill":
                self._chill(firing.cpu, argument)
            case "breakpoint" if self._debug():
                self._add_notice(firing, "breakpoint()", "the debugger has the guest")
            case "breakpoint" | "panic":
                self._notice(firing, f"{kind}()", "the run ends")
                self._host.finish(End.PANIC if kind == "panic" else End.BREAKPOINT)
            case "stop" if self._stop is not None:
                if how := self._stop():
                    self._add_notice(firing, "stop()", f"the guest is paused: {how}")
            case "raise":
                self._notice(firing, f"raise({argument})", "ignored: no processes of the guest are known")
            case _:
                self._notice(firing, f"{kind}()", "ignored: no processes of the guest are known")

    def _intervene(self, firing: Firing, what: str, argument: int) -> None:
        # A provider may have made the probe after its clause was checked.
        if why := why_not(what, self._probe(firing.enabling.probe)):
            raise Fault(FaultKind.ILLOP, text=why)
        made = firing.intervene()
        if what == OVERRIDE:
            made.override(argument)
        else:
            made.skip()

    def take_notices(self) -> list[str]:
        """The notices since the last time."""
        taken, self._notices = self._notices, []
        return taken

    def _notice(self, firing: Firing, action: str, what: str) -> None:
        """Add a notice, once for each action and probe."""
        probe = firing.enabling.probe
        if (action, probe) not in self._noticed:
            self._noticed.add((action, probe))
            self._add_notice(firing, action, what)

    def _add_notice(self, firing: Firing, action: str, what: str) -> None:
        place = f" at {firing.site:#x} ({self._symbols.describe(firing.site, 'stack')})" if firing.site else ""
        probe = self._probe(firing.enabling.probe)
        self._notices.append(f"{action} by {probe} on CPU {firing.cpu}{place}: {what}")

    def _chill(self, cpu: int, duration: int) -> None:
        """Let time pass: as in dtrace_action_chill(), at most 500 ms of each second of a CPU, and more is ILLOP."""
        now = self._host.now()
        since, chilled = self._chilled.get(cpu, (now, 0))
        if now - since > _CHILL_INTERVAL:
            since, chilled = now, 0
        if duration < 0 or chilled + duration > _MOST_CHILLED:
            raise Fault(FaultKind.ILLOP)
        self._host.spend(duration)
        self._chilled[cpu] = since, chilled + duration
