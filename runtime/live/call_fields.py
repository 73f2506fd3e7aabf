"""What a clause reads of hits of `syscall` probes -> what is recorded at the kernel's functions where these fire."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kinst.runtime.clauses.needs import Needs
from kinst.runtime.live.fields import Fields, NotKeptError
from kinst.runtime.live.system_calls import Asked, SystemCalls
from kinst.runtime.live.ways_out import WayOut
from kinst.runtime.providers.syscall import MOST
from kinst.runtime.tracing.standalone.admission import registers_of
from kinst.targets.manifest.packed import ProbeKind
from kinst.targets.standalone import TIME
from kinst.targets.values import dataclass

_ENTRY: Final = {int(ProbeKind.FBT_ENTRY)}
_OF_HANDLER: Final = frozenset({"caller", "stack()", "stackdepth"})  # on the way out they are those of its caller


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a clause reads: its word, the rows of the manifest's probes where it is read, and what gives the
    fields there, or raises NotKeptError."""

    word: str
    rows: tuple[int, ...]
    fields: Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class CallFields:
    """The fields of one kernel."""

    known: Fields
    calls: SystemCalls

    def of(self, asked: Asked, wanted: Needs) -> Iterator[Part]:
        """All that a clause of these probes reads."""
        if asked.entries:
            yield from self._of_entry(asked.entries, wanted)
        if not asked.has_return:
            return
        if not self.calls.ways:
            yield Part("return", (), _unknown)
        for way, rows in self.calls.ways:
            yield from self._of_way(way, rows, wanted)

    def of_action(self) -> Iterator[Part]:
        """All that an action in Python may read of those that are enabled."""
        for number in range(MOST):
            yield Part(f"arg{number}", self.calls.entered, self._saved(self.calls.offset_of(number)))
        for way, rows in self.calls.ways:
            yield Part("arg1", rows, self.result(way))

    def _of_entry(self, rows: tuple[int, ...], wanted: Needs) -> Iterator[Part]:
        yield Part("regs[]", rows, lambda: [*_time(wanted), *registers_of(wanted, self.known.image.facts)])
        yield from (Part(name, rows, self._at_entry(name)) for name in _names(wanted))
        for number in sorted(one for one in wanted.arguments if one < MOST):
            yield Part(f"arg{number}", rows, self._saved(self.calls.offset_of(number)))
        if wanted.has_threads:
            yield Part("self->", rows, self.known.of_thread)

    def _of_way(self, way: WayOut, rows: tuple[int, ...], wanted: Needs) -> Iterator[Part]:
        yield Part("regs[]", rows, _of_handler if wanted.registers else lambda: _time(wanted))
        yield from (Part(name, rows, self._at_return(name, way)) for name in _names(wanted))
        if wanted.arguments & {0, 1}:
            yield Part("arg1", rows, self.result(way))
        if wanted.has_threads:
            yield Part("self->", rows, self.known.of_thread)

    def result(self, way: WayOut) -> Callable[[], Iterable[str]]:
        """What gives the fields of what a call returns."""
        facts = self.known.image.facts
        if way.has_result:
            return lambda: (facts.registers[facts.return_value],)
        return self._saved(self.calls.offset_of(None))

    def _saved(self, offset: int) -> Callable[[], Iterable[str]]:
        return lambda: self.known.of_saved(offset)

    def _at_entry(self, name: str) -> Callable[[], Iterable[str]]:
        return tuple if name == "errno" else lambda: self.known.of(name, _ENTRY)

    def _at_return(self, name: str, way: WayOut) -> Callable[[], Iterable[str]]:
        if name == "errno":
            return self.result(way)
        return _of_handler if name in _OF_HANDLER else lambda: self.known.of(name, set())


def _time(wanted: Needs) -> list[str]:
    return [TIME] if wanted.has_time else []


def _names(wanted: Needs) -> list[str]:
    return sorted({*wanted.others, *(("cpu",) if wanted.has_cpu else ())})


def _unknown() -> Iterable[str]:
    raise NotKeptError("nothing tells where this kernel's handlers of system calls return to")


def _of_handler() -> Iterable[str]:
    raise NotKeptError("is not recorded where a system call returns")
