"""A file with an image that is in the machine beside the first one, as a user gives it; its content is not read."""

from pathlib import Path
from typing import Final

from kinst.runtime.machine.configuration import FileAt, mapped
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_ELF: Final = b"\x7fELF"
NO_PLACE: Final = "--load {}: FILE@ADDRESS, for example u-boot.bin@0x80200000; an ELF file has its address itself"


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


def loaded_file(path: Path, module: str | None, address: int | None) -> BesideFile:
    """A file of --load; an ELF file has its address itself. Raises UsageError."""
    if address is None and not path.exists():
        raise UsageError(NO_PLACE.format(path))
    content = mapped("--load", path)
    if not content:
        raise UsageError(f"--load {path}: is empty")
    if bytes(content[:4]) == _ELF:
        from kinst.runtime.tracing.placed_elf import placed_elf

        return BesideFile(path, module, None, placed_elf(path, address), is_image=module is not None)
    if address is None:
        raise UsageError(NO_PLACE.format(path))
    return BesideFile(path, module, address, FileAt(path.name, address, content), is_image=module is not None)


def stage_file(path: Path, module: str | None, address: int | None) -> BesideFile:
    """A file of --stage. Raises UsageError."""
    mapped("--stage", path)
    return BesideFile(path, module, address, None, is_image=True)
