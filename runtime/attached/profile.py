"""What Qiling's OS layer knows of the guest. See `kinst.runtime.clauses.environment.GuestProfile`."""

from collections.abc import Callable, Sequence

from kinst.runtime.attached.guest import AttachedGuest
from kinst.runtime.clauses.environment import TaskState
from kinst.runtime.hits.thread_ranges import ThreadRanges
from kinst.runtime.trap.trap import Firing


class AttachedProfile:
    """The one process that Qiling runs."""

    def __init__(self, guest: AttachedGuest, image_name: str) -> None:
        """`image_name` is shown where Qiling was given no file."""
        self._guest = guest
        self._name = image_name

    description = "the thread that Qiling runs"

    def begin(self, forget: Callable[[int], None]) -> None:
        """Do nothing: Qiling does not report the end of a thread."""

    def thread(self, firing: Firing) -> int:
        """Qiling's current thread, or a thread of the tracer, whose number is below 0."""
        return firing.thread if firing.thread < 0 else self._guest.thread()

    def integer(self, firing: Firing, name: str) -> int:
        """pid, tid, uid, gid and so on; 0 for others."""
        return self._guest.integer(name)

    def string(self, firing: Firing, name: str) -> bytes:
        """execname, execargs, cwd, root."""
        found = self._guest.string(name)
        if not found and name in ("execname", "execargs"):
            found = self._name
        return found.encode(errors="surrogateescape")

    def is_user(self, firing: Firing) -> bool:
        """False: stack() is that of the traced program, whatever mode it runs in."""
        return False

    def user_registers(self, firing: Firing) -> Sequence[int] | None:
        """The program's."""
        return firing.regs

    def ranges(self, changed: Callable[[], None]) -> ThreadRanges | None:
        """None: hits of this machine are not recorded."""
        return None

    def interrupted(self, sp: int) -> Sequence[int] | None:
        """None: under Qiling no handler runs on the stack that an exception interrupted."""
        return None

    def tasks(self) -> Sequence[TaskState]:
        """Empty: there is no kernel with a list of tasks."""
        return ()

    def why_not(self, name: str) -> str:
        """Empty: there is nothing that the user could do about it."""
        return ""
