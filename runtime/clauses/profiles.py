"""What the guest's software tells about itself: its threads, processes and names.

A profile reads an operating system's own structures, so it belongs to that system: `profile_for` takes the first one of
`PROFILES` whose evidence is in the image, and the bare machine's where there is none. A profile for an operating system
is a class with the methods of `environment.GuestProfile`, and a function that makes it from a `Guest`
or answers None if the image is not that system's (say, without `init_task` of the type `struct task_struct`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kinst.runtime.clauses.environment import GuestProfile, Memory
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import ImageTypes

UserMode = Callable[[Firing], bool]


@dataclass(frozen=True, slots=True)
class Guest:
    """What a profile may ask: the image's types and symbols, its memory, and the state of its CPU."""

    name: str  # of the image's file; empty without one
    arch: ArchFacts
    types: ImageTypes
    memory: Memory
    is_user: UserMode
    threads: Callable[[Firing], int] = lambda firing: firing.thread  # keys of self->, where only stacks tell
    bias: int = 0  # by how much the image was moved when it was loaded


ProfileFactory = Callable[[Guest], GuestProfile | None]


class BareProfile:
    """A machine of whose software nothing is known but its stacks, and every number is 0."""

    def __init__(
        self,
        image_name: str,
        is_user: UserMode = lambda _firing: False,
        threads: Callable[[Firing], int] = lambda firing: firing.thread,
    ) -> None:
        """`image_name` is shown as execname; `threads` tells the thread, by default the CPU."""
        self._name = image_name.encode(errors="surrogateescape")
        self._is_user = is_user
        self.thread = threads

    def integer(self, firing: Firing, name: str) -> int:
        """0."""
        return 0

    def string(self, firing: Firing, name: str) -> bytes:
        """execname and execargs: the image's file name; all else is empty."""
        return self._name if name in ("execname", "execargs") else b""

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        return self._is_user(firing)


PROFILES: Final[tuple[ProfileFactory, ...]] = ()


def profile_for(guest: Guest, profiles: Sequence[ProfileFactory] = PROFILES) -> GuestProfile:
    """The profile of the operating system that the image is."""
    for make in profiles:
        profile = make(guest)
        if profile is not None:
            return profile
    return BareProfile(guest.name, guest.is_user, guest.threads)


def user_mode(arch: ArchFacts, read: Callable[[str], int]) -> UserMode:
    """Whether the CPU is in user mode when a probe fires; `read` gives a register that is not in the trap frame."""
    register, mask, wanted = arch.user_mode
    if isinstance(register, str):
        return lambda _firing: read(register) & mask == wanted
    return lambda firing: firing.regs[register] & mask == wanted
