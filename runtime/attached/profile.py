"""What Qiling's OS layer tells of the guest. See `kinst.runtime.clauses.environment.GuestProfile`."""

from collections.abc import Callable, Sequence

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.hits.thread_ranges import ThreadRanges
from kinst.runtime.trap.trap import Firing


class AttachedProfile:
    """The one process that Qiling runs."""

    def __init__(self, guest: AttachedGuest, image_name: str) -> None:
        """`image_name` is what is shown where Qiling was given no file."""
        self._guest = guest
        self._name = image_name

    description = "the thread that Qiling runs"

    def begin(self, forget: Callable[[int], None]) -> None:
        """When a thread ends, Qiling does not tell."""

    def thread(self, firing: Firing) -> int:
        """Qiling's current thread; the tracer's own threads have numbers below 0."""
        return firing.thread if firing.thread < 0 else self._guest.thread()

    def integer(self, firing: Firing, name: str) -> int:
        """pid, tid, uid, gid; all else is 0."""
        return self._guest.integer(name)

    def string(self, firing: Firing, name: str) -> bytes:
        """execname, execargs, cwd, root."""
        found = self._guest.string(name)
        if not found and name in ("execname", "execargs"):
            found = self._name
        return found.encode(errors="surrogateescape")

    def is_user(self, firing: Firing) -> bool:
        """What is traced is the program: stack() is about it, whatever mode it runs in."""
        return False

    def user_registers(self, firing: Firing) -> Sequence[int] | None:
        """The program's."""
        return firing.regs

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """None: hits of this machine are not recorded."""
        return None

    def interrupted(self, sp: int) -> Sequence[int] | None:
        """None: Qiling has no exceptions that a program's code handles on its stack."""
        return None

    def tasks(self) -> Sequence[TaskState]:
        """None: Qiling's threads have no kernel that keeps them."""
        return ()

    def why_not(self, name: str) -> str:
        """Empty: what Qiling does not know, no other would."""
        return ""
