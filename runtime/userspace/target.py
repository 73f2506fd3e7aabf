"""The process that a user means by -p and --exec, and that `$target` stands for."""

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """One process, by its number, or all that run a program."""

    pid: int | None = None
    program: str = ""  # a path in the guest, or the name of a file

    @property
    def option(self) -> str:
        """How it was given."""
        return f"--exec {self.program}" if self.pid is None else f"-p {self.pid}"


def target(pid: int | None, program: str | None) -> Target | None:
    """What two options mean; None: neither is given. Raises UsageError."""
    if pid is not None and program is not None:
        raise UsageError(f"-p {pid}, --exec {program}: one of them says which processes are meant")
    if pid is not None:
        return Target(pid)
    if program is None:
        return None
    if not program or program.endswith("/"):
        raise UsageError(f"--exec {program}: is no path of a program in the guest")
    return Target(None, program)
