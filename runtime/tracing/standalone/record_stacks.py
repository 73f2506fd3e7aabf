"""A record with a part of the stack -> stack(), stackdepth and caller, by link addresses, wherever the image runs."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from kinst.rewriter.program import Program
from kinst.runtime.tracing.standalone.record_memory import RecordMemory
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.targets.image import Image

if TYPE_CHECKING:
    from kinst.runtime.unwinding.frame_rules import FrameRules
    from kinst.runtime.unwinding.stacks import Interrupted, MachineStacks


class RecordStacks:
    """Implements `kinst.runtime.clauses.environment.Stacks`. What lies above the part that was recorded is not known:
    a stack ends there."""

    def __init__(
        self, image: Image, memory: RecordMemory, program: Callable[[], Program], warn: Callable[[str], None]
    ) -> None:
        """`image` is the original; `warn` is called once if a stack ends so."""
        self._memory, self._warn = memory, warn
        self._has_warned = False
        self._spans = [range(one.address, one.address + one.size) for one in image.segments if one.size]
        self._has_frames = True
        self._moved = 0  # by how many bytes the image that is running now was moved
        self._arch, self._program = image.facts, program
        self._crossing: Interrupted | None = None

    @cached_property
    def _rules(self) -> "FrameRules":
        from kinst.runtime.unwinding.frame_rules import FrameRules  # DWARF, which most programs do without

        return FrameRules(self._arch, self._program, self.link)

    @cached_property
    def _stacks(self) -> "MachineStacks":
        from kinst.runtime.unwinding.stacks import MachineStacks

        stacks = MachineStacks(self._arch, self._memory, self._rules)
        if (interrupted := self._crossing) is not None:
            stacks.cross(lambda sp: None if self._memory.is_cut else interrupted(sp))
        return stacks

    def follows_call(self, address: int) -> bool:
        """See `Stacks`."""
        return self._rules.unwinder.follows_call(address)

    def cross(self, interrupted: "Interrupted") -> None:
        """See `MachineStacks`. A walk that has left the recorded part has not reached the frame of an exception."""
        assert "_stacks" not in vars(self), "nothing was walked yet"
        self._crossing = interrupted

    def expect(self, *, has_frames: bool) -> None:
        """Set whether records have more of the stack than a return address."""
        self._has_frames = has_frames

    def move(self, by: int) -> None:
        """Set by how many bytes the running image was moved from its link addresses."""
        self._moved = by

    def link(self, address: int) -> int:
        """The link address of an address in the running image; others as they are."""
        return address - self._moved if self._moved and self._is_linked(address - self._moved) else address

    def stack(self, firing: Firing, frames: int) -> tuple[int, ...]:
        """See `Stacks`. Raises Fault: ILLOP: it was not recorded."""
        if not self._has_frames:
            raise Fault(FaultKind.ILLOP, 0, "was not recorded: a clause that reads stack() has it recorded")
        found = tuple(map(self.link, self._stacks.stack(firing, frames)))
        if self._memory.is_cut and not self._has_warned:
            self._has_warned = True
            self._warn("stacks are shown as far as they were recorded: some continue beyond that, in another page")
        return found

    def depth(self, firing: Firing) -> int:
        """See `Stacks`."""
        return self._stacks.depth(firing)

    def caller(self, firing: Firing) -> int:
        """See `Stacks`."""
        return self.link(self._stacks.caller(firing))

    def reach(self, firing: Firing) -> int:
        """See `MachineStacks`."""
        return self._stacks.reach(firing)

    def _is_linked(self, address: int) -> bool:
        return any(address in span for span in self._spans)
