"""A value on the command line of kinst-run -> the file that it names, if it names one."""

from pathlib import Path

from kinst.runtime.machine.disk import DiskMode


def file_of_image(text: str) -> Path | None:
    """The image, if the first word names a file; otherwise it is an argument of the programs."""
    return Path(text) if _exists(Path(text)) else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except ValueError:  # a path with a NUL
        return False


def file_of_script(text: str) -> Path | None:
    """The file of -s; `-` is standard input."""
    return None if text == "-" else Path(text)


def file_of_disk(text: str) -> Path:
    """The file of --disk."""
    return disk_parts(text)[0]


def disk_parts(text: str) -> tuple[Path, DiskMode]:
    """The file and the mode of --disk: FILE, FILE,rw or FILE,ro."""
    name, comma, mode = text.rpartition(",")
    if comma and mode in (DiskMode.READ_WRITE.value, DiskMode.READ_ONLY.value):
        return Path(name), DiskMode(mode)
    return Path(text), DiskMode.COPY


def file_of_module(text: str) -> Path | None:
    """The file of --module: NAME=FILE."""
    _, _, file = text.partition("=")
    return Path(file) if file else None


def file_at_address(text: str) -> Path | None:
    """The file of --load: FILE@ADDRESS, or an ELF file without an address."""
    name, at, _ = text.rpartition("@")
    return Path(name if at else text)


def file_of_memory(text: str) -> Path | None:
    """The file of --read: FILE, or FILE@ADDRESS where there is no file of that name; gdb:HOST:PORT and qmp:SOCKET are
    none."""
    if text.startswith(("gdb:", "qmp:")):
        return None
    return Path(text) if _exists(Path(text)) else file_at_address(text)
