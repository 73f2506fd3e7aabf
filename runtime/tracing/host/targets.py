"""The target of a request -> which processes of a guest it is."""

from collections.abc import Callable
from typing import Final

from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.clauses.profiles import Guest
from kinst.runtime.trap.trap import Firing
from kinst.runtime.userspace.target import Target
from kinst.targets.errors import UsageError

Chosen = Callable[[Firing], bool]
Integer = Callable[[Firing, str], int]  # a number of the task of a firing, by the name of D's variable
_NOBODY: Final = -1  # no process has this number: 0 is that of the idle tasks


def chosen(target: Target | None, guest: Guest, profile: GuestProfile, resolved: Callable[[str], str]) -> Chosen | None:
    """Whether a firing is in one of the processes that the user means; None: all are meant.

    Args:
        target: what was given.
        guest: what is known of the guest.
        profile: its operating system.
        resolved: gives where a path leads, as far as the guest's symbolic links are known.

    Raises:
        UsageError: the guest has no processes that are known.
    """
    number = profile.integer
    if target is None:
        return None
    why = profile.why_not("pid")
    if why:
        raise UsageError(f"{target.option}: {why}")
    if target.pid is not None:
        return lambda firing: number(firing, "pid") == target.pid
    from kinst.runtime.userspace.file_paths import LinuxPaths
    from kinst.runtime.userspace.processes import RunningProgram

    program = RunningProgram(guest.types, guest.memory, LinuxPaths(guest.types, guest.memory), number)
    obstacle = program.obstacle()
    if obstacle:
        raise UsageError(f"{target.option}: {guest.name}: {obstacle}")
    path = resolved(target.program)
    return lambda firing: program.is_at(firing, path)


def number_if(is_chosen: Chosen | None, number: Integer) -> Callable[[Firing], int]:
    """What `$target` is where that is found while the guest runs: the number of the current process if it is chosen,
    else that of nobody."""
    return lambda firing: number(firing, "pid") if is_chosen is not None and is_chosen(firing) else _NOBODY
