"""A text of the command line of kinst-run -> the file that it names, if it names one."""

from pathlib import Path

from kinst.runtime.machine.disk import DiskMode


def file_of_image(text: str) -> Path | None:
    """The image that the first word is, if there is such a file; else it is an argument of the programs."""
    return Path(text) if _exists(Path(text)) else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except ValueError:  # a path with a NUL
        return False


def file_of_script(text: str) -> Path | None:
    """That of -s; `-` is standard input."""
    return None if text == "-" else Path(text)


def file_of_disk(text: str) -> Path:
    """That of --disk."""
    return disk_parts(text)[0]


def disk_parts(text: str) -> tuple[Path, DiskMode]:
    """The file and the mode of --disk: FILE, FILE,rw or FILE,ro."""
    name, comma, mode = text.rpartition(",")
    if comma and mode in (DiskMode.READ_WRITE.value, DiskMode.READ_ONLY.value):
        return Path(name), DiskMode(mode)
    return Path(text), DiskMode.COPY


def file_of_module(text: str) -> Path | None:
    """That of --module: NAME=FILE."""
    _, _, file = text.partition("=")
    return Path(file) if file else None


def file_at_address(text: str) -> Path | None:
    """That of --load: FILE@ADDRESS, or an ELF file by itself."""
    name, at, _ = text.rpartition("@")
    return Path(name if at else text)


def file_of_memory(text: str) -> Path | None:
    """That of --read: FILE, or FILE@ADDRESS where there is no file of that name; gdb:HOST:PORT is none."""
    if text.startswith("gdb:"):
        return None
    return Path(text) if _exists(Path(text)) else file_at_address(text)
