"""A function and how an input is passed to it -> what becomes of one input, and the blocks that it reached."""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.engine.covered.edge_map import EdgeMap
from kinst.runtime.machine.calling.arguments import Argument, Buffer, Hole, Written
from kinst.runtime.machine.calling.called import Called
from kinst.runtime.machine.calling.template import Call, CallTemplate, made, parse_template
from kinst.runtime.machine.configuration import End
from kinst.runtime.machine.hooks import NO_HOOKS
from kinst.runtime.tracing.guests.calls import Calls
from kinst.targets.errors import UsageError

_DATA, _TEXT, _SIZE = "data", "text", "size"
_NAMES: Final = (_DATA, _TEXT, _SIZE)


def target_template(text: str) -> CallTemplate:
    """Read 'f($data, $size)'. Raises UsageError: the input is not in it."""
    template = parse_template(text)
    unknown = [name for name in template.holes if name not in _NAMES]
    if unknown:
        raise UsageError(f"--call {text}: ${unknown[0]}: is one of $data, $text and $size")
    if _DATA not in template.holes and _TEXT not in template.holes:
        raise UsageError(f"--call {text}: say where the input goes: 'f($data, $size)', or 'f($text)' for a string")
    return template


class Target:
    """One function, with its machine."""

    def __init__(self, calls: Calls, template: CallTemplate, alignment: int, timeout: int) -> None:
        """`alignment` is that of $data, in bytes; `timeout` of a call, in ns of the machine's time. Raises UsageError:
        there is no such function."""
        self._calls, self._template, self._alignment, self.timeout = calls, template, alignment, timeout
        calls.address_of(template.function)
        self.edges = EdgeMap(calls.engine)

    @property
    def function(self) -> str:
        """Its name."""
        return self._template.function

    def call_of(self, data: bytes) -> Call:
        """The call for an input, without its text."""
        return Call(self._template.function, tuple(self._passed(one, data) for one in self._template.arguments), "")

    def _passed(self, argument: Written, data: bytes) -> Argument:
        match argument:
            case Hole(name="data"):
                return Buffer(data, self._alignment)
            case Hole(name="text"):
                return data.split(b"\0", 1)[0]
            case Hole():
                return len(data)
            case _:
                return argument

    def stop(self) -> None:
        """End the call that is under way, or the next one, with `End.INTERRUPTED`."""
        self._calls.finish(End.INTERRUPTED)

    def shown(self, data: bytes) -> str:
        """The call for an input, as kinst-run's --call takes it."""
        return made(self._template.function, self.call_of(data).arguments).text

    def run(self, data: bytes, wall: int | None = None) -> Called:
        """Call the function; `edges` has what it reached. `wall`: the host's time that is left, in ns."""
        self.edges.begin()
        return self._calls.call(self.call_of(data), self.timeout, NO_HOOKS, wall)


def kind_of(called: Called) -> tuple[str, ...] | None:
    """What tells one crash from another: its kind, and where it is; None: it is none."""
    match called.end:
        case None:
            what = called.what or called.error
            return "crash", called.where, " ".join(what.split()[:2])
        case End.RETURNED | End.INTERRUPTED | End.WALL_TIMEOUT:
            return None
        case End.TIMEOUT:
            return ("hang",)
        case _:
            return "crash", called.end.value


def described(called: Called) -> str:
    """What happened, in words."""
    if called.end is None:
        return f"{called.what}, at {called.where}" if called.pc is not None else called.error
    return "did not return in time" if called.end is End.TIMEOUT else f"ended the machine: {called.end.value}"


def smaller(data: bytes) -> Sequence[bytes]:
    """Inputs that are a little less than another: without a piece of it, large pieces first."""
    found, size = [], len(data)
    while size >= 1:
        found += [data[:at] + data[at + size :] for at in range(len(data) - 1, -1, -size) if at + size <= len(data)]
        size //= 2
    return found
