"""A program or library on the host that stands for one of the guest."""

from pathlib import Path

from kinst.targets.values import dataclass


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file of the host. Without a path it stands for all files of the guest that have its name."""

    file: Path
    path: str = ""  # in the guest

    @property
    def given(self) -> str:
        """What the user wrote."""
        return f"--user {self.path}={self.file}" if self.path else f"--user {self.file}"
