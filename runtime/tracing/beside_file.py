"""A file with an image that is in the machine beside the first one, as a user gives it. Nothing is opened yet."""

from dataclasses import dataclass
from pathlib import Path

from kinst.runtime.machine.configuration import FileAt


@dataclass(frozen=True, slots=True)
class BesideFile:
    """One of `--load`, whose bytes may be an image, or of `--stage`."""

    path: Path
    module: str | None  # its name in probes; None: as its file
    address: int | None  # where it is linked, if it does not say so
    loaded: FileAt | None  # where it is loaded; None: the guest brings it
    is_image: bool  # the user says so; otherwise it may be anything

    @property
    def option(self) -> str:
        """How the user gave it, for messages."""
        return f"{'--stage' if self.loaded is None else '--load'} {self.path}"
