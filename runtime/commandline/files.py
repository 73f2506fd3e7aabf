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


def file_of_user(text: str) -> Path:
    """The file of --user."""
    return user_parts(text)[1]


def user_parts(text: str) -> tuple[str, Path]:
    """The path in the guest, empty if there is none, and the file of --user: FILE, or /PATH=FILE where there is no file
    of that name."""
    path, equals, file = text.partition("=")
    is_pair = bool(equals and file) and path.startswith("/") and not _exists(Path(text))
    return (path, Path(file)) if is_pair else ("", Path(text))


def file_at_address(text: str) -> Path | None:
    """The file of FILE@ADDRESS, or of FILE."""
    name, at, _ = text.rpartition("@")
    return Path(name if at else text)


def file_of_named(text: str) -> Path | None:
    """The file of --load and --stage: NAME=FILE@ADDRESS, of which only FILE must be there."""
    return file_at_address(named_parts(text)[1])


def named_parts(text: str) -> tuple[str | None, str]:
    """NAME and what follows of NAME=FILE; no name if there is a file of that name, `=` and all, or a path before it."""
    name, equals, rest = text.partition("=")
    if not equals or not name or "/" in name or _exists(Path(text)) or _exists(Path(text.rpartition("@")[0] or text)):
        return None, text
    return name, rest


def file_of_snapshot(text: str) -> Path | None:
    """The file of --snapshot-at: PROBE=FILE."""
    _, _, name = text.partition("=")
    return Path(name) if name else None


def file_of_memory(text: str) -> Path | None:
    """The file of --read: FILE, or FILE@ADDRESS where there is no file of that name; gdb:HOST:PORT and qmp:SOCKET are
    none."""
    if text.startswith(("gdb:", "qmp:")):
        return None
    return Path(text) if _exists(Path(text)) else file_at_address(text)
