"""Texts of kinst-run's options -> values: sizes, times, files, disks. Each error names its option."""

import re
from pathlib import Path
from typing import Any, Final

from kinst.runtime.commandline.files import disk_parts
from kinst.runtime.input.expression import Expression, expression
from kinst.runtime.machine.configuration import FileAt, mapped
from kinst.runtime.machine.disk import Disk, open_disk
from kinst.runtime.tracing.programs.quantities import seconds_of, size_of
from kinst.targets.errors import UsageError

_ELF: Final = b"\x7fELF"
_NO_PLACE: Final = "--load {}: FILE@ADDRESS, for example u-boot.bin@0x80200000; an ELF file has its address itself"


def placed(text: str) -> FileAt:
    """A file and its load address, which an ELF file contains. Raises UsageError."""
    name, at, last = text.rpartition("@")
    found = re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}", last)
    if not at or found is None:
        name, found = text, None
    if not name or "\0" in name:
        raise UsageError(_NO_PLACE.format(text))
    path, address = Path(name), None if found is None else int(last, 16 if last[:2] in ("0x", "0X") else 10)
    if found is None and not path.exists():
        raise UsageError(_NO_PLACE.format(text))
    content = mapped("--load", path)
    if not content:
        raise UsageError(f"--load {name}: is empty")
    if bytes(content[:4]) == _ELF:
        from kinst.runtime.commandline.placed_elf import placed_elf

        return placed_elf(path, address)
    if address is None:
        raise UsageError(_NO_PLACE.format(text))
    return FileAt(path.name, address, content)


def disk(text: str) -> Disk:
    """A disk of --disk. Raises KinstError."""
    return open_disk(*disk_parts(text))


def typed(path: Path | None) -> tuple[bytes, ...]:
    """The lines of --input."""
    from kinst.runtime.input.typist import lines_to_type

    return () if path is None else tuple(lines_to_type(bytes(mapped("--input", path))))


def prompt(given: dict[str, Any]) -> Expression | None:
    """The expression that is awaited before each line of --input; None: the lines are typed when the guest waits."""
    if given["prompt"] is None:
        return None
    if given["input"] is None:
        raise UsageError(f"--prompt {given['prompt']}: there is nothing to type: give --input")
    return expression("--prompt", given["prompt"])


def module(text: str) -> tuple[str, Path]:
    """A kernel module's name and file. Raises UsageError."""
    name, _, file = text.partition("=")
    if not name or not file:
        raise UsageError(f"--module {text}: NAME=FILE, a name for D programs and the module's .ko file")
    return name, Path(file)


def size(text: str | None) -> int | None:
    """A number of bytes. Raises UsageError."""
    return None if text is None else size_of("--memory", text)


def seconds(given: dict[str, Any], option: str) -> float | None:
    """A time in seconds. Raises UsageError."""
    text = given[option.replace("-", "_")]
    return None if text is None else seconds_of(f"--{option}", text)
