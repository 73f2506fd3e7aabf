"""Texts of kinst-run's options -> values: sizes, times, files, disks. Each error names its option."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kinst.runtime.commandline.files import disk_parts, named_parts
from kinst.runtime.input.expression import Expression, expression
from kinst.runtime.machine.configuration import FileAt, mapped
from kinst.runtime.machine.disk import Disk, open_disk
from kinst.runtime.tracing.beside_file import NO_PLACE, BesideFile, loaded_file, stage_file
from kinst.runtime.tracing.programs.quantities import seconds_of, size_of
from kinst.targets.errors import UsageError
from kinst.targets.probe import checked_module

_NO_FILE: Final = "--stage {}: NAME=FILE, a name for D programs and the image that the guest loads"


def placed(text: str) -> FileAt:
    """The bytes of --load: [NAME=]FILE[@ADDRESS]; an ELF file has its address itself. Raises UsageError."""
    found = loaded(text).loaded
    assert found is not None, "it is loaded"
    return found


def loaded(text: str) -> BesideFile:
    """A file of --load, which may be an image. Raises UsageError."""
    module, path, address = _named("--load", text)
    return loaded_file(path, module, address)


def stage(text: str) -> BesideFile:
    """A file of --stage. Raises UsageError."""
    module, path, address = _named("--stage", text)
    return stage_file(path, module, address)


def _named(option: str, text: str) -> tuple[str | None, Path, int | None]:
    """NAME, FILE and ADDRESS. Raises UsageError."""
    module, rest = named_parts(text)
    name, at, last = rest.rpartition("@")
    found = re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}", last)
    if not at or found is None:
        name, found = rest, None
    if not name or "\0" in name:
        raise UsageError(NO_PLACE.format(text) if option == "--load" else _NO_FILE.format(text))
    address = None if found is None else int(last, 16 if last[:2] in ("0x", "0X") else 10)
    return None if module is None else checked_module(module, option), Path(name), address


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


def modules(texts: Sequence[str]) -> tuple[tuple[tuple[str, Path], ...], tuple[Path, ...]]:
    """The kernel modules of --module, by name, and the folders with more of them. Raises UsageError."""
    folders = tuple(Path(text) for text in texts if "=" not in text and Path(text).is_dir())
    return tuple(_module(text) for text in texts if Path(text) not in folders), folders


def _module(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not name or not file:
        raise UsageError(
            f"--module {text}: NAME=FILE, a name for D programs and the module's .ko file, or a folder with such files"
        )
    return name, Path(file)


def size(text: str | None) -> int | None:
    """A number of bytes. Raises UsageError."""
    return None if text is None else size_of("--memory", text)


def seconds(given: dict[str, Any], option: str) -> float | None:
    """A time in seconds. Raises UsageError."""
    text = given[option.replace("-", "_")]
    return None if text is None else seconds_of(f"--{option}", text)
