"""What is known about the guest's software: its threads, processes and names.

A profile reads the structures of one operating system, so it belongs to that system (`kinst.runtime.systems`, one file
each): a class with the methods of `environment.GuestProfile`, and a function that makes it from a `Guest`, or returns
None if the image is not that system's. The bare machine's profile is here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kinst.runtime.clauses.environment import GuestProfile, Memory
from kinst.runtime.trap.trap import Firing
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import ImageTypes

UserMode = Callable[[Firing], bool]


@dataclass(frozen=True, slots=True)
class Guest:
    """What a profile may use: the image's types and symbols, its memory, and the state of its CPU."""

    name: str  # the file name of the image; empty without an image
    arch: ArchFacts
    types: ImageTypes
    memory: Memory
    is_user: UserMode
    threads: Callable[[Firing], int] = lambda firing: firing.thread  # keys of self-> if only stacks tell threads apart
    symbol: Callable[[str], int | None] = lambda _name: None  # where a symbol was linked
    register: Callable[[str], int] = lambda _name: 0  # a register of the CPU, including those outside the trap frame
    bias: int = 0  # how far, in bytes, the image was moved when it was loaded


ProfileFactory = Callable[[Guest], GuestProfile | None]


class BareProfile:
    """The profile of a machine about whose software nothing is known but its stacks."""

    def __init__(
        self,
        image_name: str,
        is_user: UserMode = lambda _firing: False,
        threads: Callable[[Firing], int] = lambda firing: firing.thread,
    ) -> None:
        """`image_name` is shown as execname. `threads` gives the thread of a firing; by default it is the CPU."""
        self._name = image_name.encode(errors="surrogateescape")
        self._is_user = is_user
        self.thread = threads

    def integer(self, firing: Firing, name: str) -> int:
        """0 for pid, uid and all others: a bare machine has no processes."""
        return 0

    def string(self, firing: Firing, name: str) -> bytes:
        """The image's file name for execname and execargs; empty for all others."""
        return self._name if name in ("execname", "execargs") else b""

    def is_user(self, firing: Firing) -> bool:
        """Whether the CPU is in user mode."""
        return self._is_user(firing)


def profile_for(guest: Guest, profiles: Sequence[ProfileFactory]) -> GuestProfile:
    """The first profile that recognises the image, or the bare machine's."""
    for make in profiles:
        profile = make(guest)
        if profile is not None:
            return profile
    return BareProfile(guest.name, guest.is_user, guest.threads)


def user_mode(arch: ArchFacts, read: Callable[[str], int]) -> UserMode:
    """A function that says whether a firing's CPU is in user mode. `read` gives registers outside the trap frame."""
    register, mask, wanted = arch.user_mode
    if isinstance(register, str):
        return lambda _firing: read(register) & mask == wanted
    return lambda firing: firing.regs[register] & mask == wanted
