"""lockstat, DTrace's provider of locks: Linux' mutexes (adaptive), spinlocks and readers' and writers' locks (rw).

The first argument is the lock's address. What waits is told of by tracepoints that all kinds of locks have since Linux
5.19 (include/trace/events/lock.h), with the time in ns; what is taken and given back by the functions for it. Kernels
that have some of these functions inlined (spinlocks of arm64) have no such probe, since it would miss most. Spinlocks
are waited for in a function too: their tracepoint does not tell of the first that waits (kernel/locking/qspinlock.c).

    contention_begin(lock, flags), contention_end(lock, error): an optimistic mutex begins twice, first as if it spun
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntFlag
from typing import Final

from kinst.runtime.providers.events import Event, EventsProvider, Numbers, Place, function, tracepoint
from kinst.runtime.providers.host import ProviderHost
from kinst.runtime.providers.linux.entered import Calls, as_int
from kinst.runtime.providers.provider import Argument

_LOCK: Final = Argument("uintptr_t")
_TIME: Final = Argument("uint64_t")
_IS_READER: Final = Argument("int")  # RW_WRITER is 0, RW_READER 1
_SLOW_PATHS: Final = ("native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath")
_STACK: Final = 14  # stacks have 16 KiB, or a multiple of it, and begin at one

# Functions by what they return: nothing, 0 if the lock is taken, or else if it is. Each has the lock as its argument.
_SPIN: Final = ("_raw_spin_lock", "_raw_spin_lock_irq", "_raw_spin_lock_irqsave", "_raw_spin_lock_bh")
_TRY_SPIN: Final = ("_raw_spin_trylock",)
_SPIN_RELEASE: Final = (
    "_raw_spin_unlock",
    "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore",
    "_raw_spin_unlock_bh",
)
_MUTEX: Final = ("mutex_lock", "mutex_lock_io")
_MAYBE_MUTEX: Final = ("mutex_lock_interruptible", "mutex_lock_killable")
_TRY_MUTEX: Final = ("mutex_trylock",)
_READ: Final = ("down_read",)
_MAYBE_READ: Final = ("down_read_interruptible", "down_read_killable")
_TRY_READ: Final = ("down_read_trylock",)
_WRITE: Final = ("down_write",)
_MAYBE_WRITE: Final = ("down_write_killable",)
_TRY_WRITE: Final = ("down_write_trylock",)


class _Flag(IntFlag):
    """LCB_F_*: who waits, and how."""

    SPIN = 1
    READ = 2
    WRITE = 4
    RT = 8
    MUTEX = 32


_NONE: Final = _Flag(0)
_RW: Final = _Flag.READ | _Flag.WRITE
_ADAPTIVE: Final = _Flag.MUTEX | _Flag.RT


class _Waits:
    """One probe's waits, from a contention's beginning to its end."""

    def __init__(self, host: ProviderHost, kind: _Flag, spin: _Flag) -> None:
        """Of locks of a kind, by waiting actively (`spin` is SPIN) or not (0)."""
        self._kind, self._spin, self._now = kind, spin, host.now
        self._sp = host.arch.stack_pointer
        self._begun: dict[tuple[int, int], tuple[int, int]] = {}  # by lock and stack: since when, and whether it reads

    def places(self) -> tuple[Place, ...]:
        """Where contentions begin and end."""
        return tracepoint("contention_begin", self._begin), tracepoint("contention_end", self._end)

    def _begin(self, at: Numbers) -> Sequence[int] | None:
        ended = self._end(at)  # another way of waiting for the same lock begins
        flags = at(1)
        if flags & self._kind and flags & _Flag.SPIN == self._spin:
            self._begun[self._who(at)] = self._now(), int(flags & _Flag.READ > 0)
        return ended

    def _end(self, at: Numbers) -> Sequence[int] | None:
        begun = self._begun.pop(self._who(at), None)
        return None if begun is None else (at(0), self._now() - begun[0], begun[1])

    def _who(self, at: Numbers) -> tuple[int, int]:
        return at(0), at.firing.regs[self._sp] >> _STACK


class _Spins:
    """What a spinlock's function calls where the lock is not free."""

    def __init__(self, host: ProviderHost) -> None:
        self._host = host

    def places(self) -> tuple[Place, ...]:
        """Its entry and return, by the names that it has."""
        # Of riscv64's two kinds of spinlocks one is chosen at boot, and the other has no such function.
        names = () if self._host.address_of("qspinlock_key") else _SLOW_PATHS
        now = self._host.now
        return tuple(
            place
            for name in names
            for place in Calls(self._host, name).places(
                lambda at: (at(0), now()), lambda kept, _result: (kept[0], now() - kept[1])
            )
        )


class _Acquired:
    """The places where one kind of lock is taken. Of functions that call each other for a lock, the outermost counts:
    mutex_lock_io() may call mutex_lock()."""

    def __init__(self, host: ProviderHost, *more: int) -> None:
        """`more` are arguments after the lock."""
        self._host, self._more, self._sp = host, more, host.arch.stack_pointer
        self._depth: dict[tuple[int, int], int] = {}  # by lock and stack

    def always(self, names: Iterable[str]) -> tuple[Place, ...]:
        """By functions that return when it is."""
        return self._places(names, lambda _result: True)

    def if_zero(self, names: Iterable[str]) -> tuple[Place, ...]:
        """By functions that return 0 then, and else an error."""
        return self._places(names, lambda result: not as_int(result))

    def if_true(self, names: Iterable[str]) -> tuple[Place, ...]:
        """By functions that try."""
        return self._places(names, lambda result: bool(as_int(result)))

    def _places(self, names: Iterable[str], is_taken: Callable[[int], bool]) -> tuple[Place, ...]:
        def left(kept: Sequence[int], result: int) -> Sequence[int] | None:
            who = kept[0], kept[1]
            depth = self._depth.pop(who, 1) - 1
            if depth > 0:
                self._depth[who] = depth
            return (kept[0], *self._more) if depth <= 0 and is_taken(result) else None

        return tuple(place for name in names for place in Calls(self._host, name).places(self._enter, left))

    def _enter(self, at: Numbers) -> Sequence[int]:
        who = at(0), at.firing.regs[self._sp] >> _STACK
        self._depth[who] = self._depth.get(who, 0) + 1
        return who


def _released(names: Iterable[str], *more: int) -> tuple[Place, ...]:
    return tuple(function(name, lambda at: (at(0), *more)) for name in names)


def _events(host: ProviderHost) -> Iterable[Event]:
    plain, reader, writer = _Acquired(host), _Acquired(host, 1), _Acquired(host, 0)
    mutexes = (*plain.always(_MUTEX), *plain.if_zero(_MAYBE_MUTEX), *plain.if_true(_TRY_MUTEX))
    spinlocks = (*plain.always(_SPIN), *plain.if_true(_TRY_SPIN))
    readers = (*reader.always(_READ), *reader.if_zero(_MAYBE_READ), *reader.if_true(_TRY_READ))
    writers = (*writer.always(_WRITE), *writer.if_zero(_MAYBE_WRITE), *writer.if_true(_TRY_WRITE))
    given_back = (*_released(("up_read",), 1), *_released(("up_write",), 0))
    rw = (_LOCK, _IS_READER)
    yield Event("adaptive-acquire", mutexes, (_LOCK,), needs_all=True)
    yield Event("adaptive-release", _released(("mutex_unlock",)), (_LOCK,), needs_all=True)
    yield Event("spin-acquire", spinlocks, (_LOCK,), needs_all=True)
    yield Event("spin-release", _released(_SPIN_RELEASE), (_LOCK,), needs_all=True)
    yield Event("rw-acquire", (*readers, *writers), rw, needs_all=True)
    yield Event("rw-release", given_back, rw, needs_all=True)
    yield Event("rw-downgrade", _released(("downgrade_write",)), (_LOCK,), needs_all=True)
    yield Event("adaptive-block", _Waits(host, _ADAPTIVE, _NONE).places(), (_LOCK, _TIME))
    yield Event("adaptive-spin", _Waits(host, _ADAPTIVE, _Flag.SPIN).places(), (_LOCK, _TIME))
    yield Event("spin-spin", _Spins(host).places(), (_LOCK, _TIME))
    yield Event("rw-block", _Waits(host, _RW, _NONE).places(), (_LOCK, _TIME, _IS_READER))
    yield Event("rw-spin", _Waits(host, _RW, _Flag.SPIN).places(), (_LOCK, _TIME, _IS_READER))


def lockstat_provider(host: ProviderHost) -> EventsProvider:
    """dtrace_lockstat(4), as far as Linux has its events."""
    return EventsProvider("lockstat", tuple(_events(host)), host)
