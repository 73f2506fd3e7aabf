"""Tail calls, as they happen -> return probes that fire when the callee has returned to the caller.

A function that ends with a jump to another one has not returned yet. Where it will return is known at the jump: an
address, and the stack pointer with which the CPU gets there. That pair identifies a frame of one stack, whichever CPU
and thread runs on it. Nested and recursive calls have different pairs. Functions that jumped one to the next share the
pair and return together, the last one first.

The guest's code is not changed, and neither is translated code. Blocks that begin at such an address are checked before
they run (`kinst.runtime.engine.native_hooks`), so the probe fires before anything else at that address.

A frame may be left in another way: by longjmp, an exception, or the end of a thread. Then the return is never seen. The
frame is known to be gone when the same call is made again at the same depth of the stack. So blocks that end with the
call are checked as well, and the block after each, in which the call has been made.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Enabling, Firing
from kinst.runtime.unwinding.return_addresses import Return, ReturnAddresses
from kinst.targets.arch.facts import ArchFacts

_VALUE: Final = 1  # arg1: the returned value
_MOST: Final = 1 << 16  # frames, and functions that wait for one; beyond that, the oldest are given up


class Marks(Protocol):
    """Addresses at which blocks of code are checked. `kinst.runtime.engine.native_hooks.BlockMarks` implements it."""

    @property
    def looks_at_next(self) -> bool:
        """Whether the next block is checked in any case."""
        ...

    def look_at_next(self, *, is_wanted: bool) -> None:
        """Check the next block in any case, or do not. It is only possible while there is a mark."""
        ...

    def mark(self, address: int) -> None:
        """Mark an address. Marks are counted."""
        ...

    def unmark(self, address: int) -> None:
        """Remove one mark of an address."""
        ...

    def has(self, address: int) -> bool:
        """Whether an address is marked, or shares its mark with one that is."""
        ...


_Left = tuple[int, Sequence[Enabling]]  # a function that left by a tail call: the jump, and what is enabled there


class _Waiting(NamedTuple):
    """What waits for a return to one address."""

    ends: tuple[int, ...]  # the ends of blocks that end with the call
    frames: dict[int, list[_Left]]  # by stack pointer, in the order of the jumps


class PendingReturns:
    """The pending returns of all stacks."""

    def __init__(
        self,
        arch: ArchFacts,
        firing: Firing,
        read: Callable[[], int],
        returns: ReturnAddresses,
        watch: Callable[[Callable[[int, int], None]], Marks],
    ) -> None:
        """No return is pending.

        Args:
            arch: the machine.
            firing: the state that probes see.
            read: fills its registers, between two instructions.
            returns: finds where functions return to.
            watch: has a function called with address and size of each block at the marks that it returns.
        """
        self._firing = firing
        self._read = read
        self._returns = returns
        self._stack_pointer, self._pc = arch.stack_pointer, arch.pc
        self._waiting: dict[int, _Waiting] = {}  # by return address
        self._count = 0  # of frames that are waited for
        self._marks = watch(self.check)

    def sites(self) -> list[int]:
        """The addresses of the tail calls that have not returned, one for each call."""
        return [site for at in self._waiting.values() for left in at.frames.values() for site, _ in left]

    def waiting(self, enablings: Sequence[Enabling], size: int) -> Enabling:
        """What takes the place of `enablings` at a tail call of a function of `size` bytes: they fire when the function
        has returned, or at once and without a value if it is not known where it returns to."""
        first, offset = enablings[0], enablings[0].offset

        def leave(firing: Firing) -> None:
            found = self._returns.at_jump(firing, firing.site - offset, size)
            if isinstance(found, str):
                # The result is not there yet: what a clause wrote into its register would be lost.
                firing.fire_unable([replace(one, argument=_without_value(one, found)) for one in enablings])
            else:
                self._wait(found, (firing.site, enablings))

        return replace(first, action=leave)

    def check(self, address: int, size: int) -> None:
        """Check a block of code that is about to run, and is marked."""
        marks = self._marks
        if marks.looks_at_next:
            marks.look_at_next(is_wanted=False)
            self._forget_former()
        if address in self._waiting:
            self._arrive(address)
        if marks.has(address + size):
            marks.look_at_next(is_wanted=True)

    def _arrive(self, address: int) -> None:
        firing = self._firing
        self._read()
        left = self._taken((address, firing.regs[self._stack_pointer]))
        made = firing.interventions
        if made is not None and left:
            made.begin(None)
        try:
            for site, enablings in reversed(left):
                firing.move(site, returned=address)
                _fire(firing, enablings)
            if made is not None and left:
                made.end(firing.regs[self._pc])
        finally:
            if made is not None:
                made.abandon()
            firing.move(firing.site)  # `returned` is 0 again

    def _forget_former(self) -> None:
        """After a call: forget what waits for a return to the same frame, since that frame is gone."""
        self._read()
        called = self._returns.at_entry(self._firing)
        if called is not None:
            self._taken(called)

    # -- frames -------------------------------------------------------------------------------------------------------

    def _wait(self, frame: Return, left: _Left) -> None:
        address, stack_pointer = frame
        waiting = self._waiting.get(address)
        if waiting is None:
            waiting = self._waiting[address] = _Waiting(self._returns.call_ends(address), {})
            for end in waiting.ends:
                self._marks.mark(end)
        others = waiting.frames.get(stack_pointer)
        if others is None:
            waiting.frames[stack_pointer] = [left]
            self._count += 1
            if self._count > _MOST:
                self._give_up()
        else:
            others.append(left)
            if len(others) > _MOST:  # functions that jump to each other forever
                del others[: _MOST // 2]

    def _taken(self, frame: Return) -> Sequence[_Left]:
        """Remove what waits for a frame, and return it in the order of the jumps."""
        address, stack_pointer = frame
        waiting = self._waiting.get(address)
        left = None if waiting is None else waiting.frames.pop(stack_pointer, None)
        if waiting is None or left is None:
            return ()
        self._count -= 1
        if not waiting.frames:
            del self._waiting[address]
            for end in waiting.ends:
                self._marks.unmark(end)
        return left

    def _give_up(self) -> None:
        """Give up the oldest frame of the return address that has waited longest."""
        address, waiting = next(iter(self._waiting.items()))
        self._taken((address, next(iter(waiting.frames))))


def _fire(firing: Firing, enablings: Sequence[Enabling]) -> None:
    for enabling in enablings:
        firing.fire(enabling)


def _without_value(enabling: Enabling, why: str) -> Callable[[Firing, int], int]:
    """arg0, arg1, ... for a return whose value is not known: arg1 is a fault."""

    def argument(firing: Firing, index: int) -> int:
        if index == _VALUE:
            raise Fault(FaultKind.ILLOP, text=f"a tail call, and where it returns to is not known: {why}")
        return enabling.argument(firing, index)

    return argument
