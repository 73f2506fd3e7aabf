"""A TOML file -> a batch: images, and what to do with each.

timeout = "10m"                  # of each task, and memory = "4g"; the command line has the last word

[[rewrite]]
images = ["modules", "fw/*.elf"] # files, folders, patterns; relative to this file
probes = ["fbt:::entry"]         # each is a task of every image

[[run]]
images = ["kernels"]
scripts = ["calls.d"]            # and programs = ["fbt:::entry { ... }"]

[[call]]
images = ["kernel.elf"]
function = "crc32"
inputs = "inputs.txt"            # arguments, a line for each call
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeVar

from kinst.runtime.batch.input_files import FileTable
from kinst.runtime.batch.tasks import Call, InputFile, Rewrite, Run, Task, Work
from kinst.runtime.batch.toml_file import content
from kinst.runtime.machine.configuration import ClockKind
from kinst.runtime.tracing.programs.program_text import read_script
from kinst.runtime.tracing.programs.quantities import seconds_of, size_of
from kinst.targets.errors import UsageError
from kinst.targets.method import Method
from kinst.targets.values import dataclass

_T = TypeVar("_T")
Table = Mapping[str, Any]
_LARGEST: Final = 1 << 30  # bytes of inputs
_MOST: Final = 1_000_000_000  # of anything that is counted
_SHOWN: Final = 60  # characters of a value in an error message
CHUNK: Final = 2000  # inputs of one task, which take a second or two
_CALL_SECONDS: Final = 0.1  # of the machine, for each input: ten million instructions

_TEXTS: Final = "texts"
_KEYS: Final[Mapping[str, Mapping[str, type | str]]] = {
    "rewrite": {"images": _TEXTS, "probes": _TEXTS, "method": str},
    "run": {
        "images": _TEXTS, "scripts": _TEXTS, "programs": _TEXTS, "arguments": _TEXTS, "options": dict,
        "command-lines": _TEXTS, "initrds": _TEXTS, "inputs": _TEXTS, "prompt": str, "machine": str, "on": str,
        "cpus": int, "memory": str, "clock": str, "until": str, "timeout": str, "on-panic": str, "report": bool,
        "coverage": bool,
    },
    "call": {
        "images": _TEXTS, "function": str, "inputs": str, "arguments": _TEXTS, "coverage": str, "machine": str,
        "timeout": str, "chunk": int,
    },
}  # fmt: skip
_OF_ALL: Final[Mapping[str, type | str]] = {"timeout": str, "memory": str}


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks, in order, and the limits of each unless the command line sets others."""

    tasks: tuple[Task, ...]
    timeout: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class BatchReader:
    """Makes tasks of the tables of a batch file."""

    files: FileTable
    version: str
    base: Path = field(default_factory=Path)  # of the names of scripts and inputs

    def batch(self, table: Table) -> Batch:
        """The batch of a whole file. Raises UsageError: it is wrong."""
        _check("", {name: value for name, value in table.items() if name not in _KEYS}, _OF_ALL, _KEYS)
        timeout, memory = _seconds("timeout", table), _size("memory", table)
        tasks = tuple(task for kind in _KEYS for part in _parts(kind, table) for task in self.tasks(kind, part))
        if not tasks:
            raise UsageError("nothing to do: give [[rewrite]], [[run]] or [[call]]")
        return Batch(tasks, timeout, memory)

    def tasks(self, kind: str, table: Table) -> Iterator[Task]:
        """The tasks of one table: every image, with each of the things to do."""
        _check(kind, table, _KEYS[kind])
        images = self.files.images(_some(kind, "images", table))
        for image, work in product(images, self._works(kind, table)):
            yield Task(image, work, self.version)

    def _works(self, kind: str, table: Table) -> Sequence[Work]:
        match kind:
            case "rewrite":
                method = _choice("method", table, [method.value for method in Method])
                return [Rewrite(probes, method) for probes in _some(kind, "probes", table)]
            case "run":
                return list(self._runs(table))
            case _:
                return list(self._calls(table))

    def _runs(self, table: Table) -> Iterator[Run]:
        scripts = [(name, read_script(str(self.base / name)).text, True) for name in _texts("scripts", table)]
        programs = [*scripts, *((text, text, False) for text in _texts("programs", table))]
        variants = product(
            programs or [("", "", False)],
            _or_none(_texts("command-lines", table)),
            _or_none(self._files("initrds", table)),
            _or_none(self._files("inputs", table)),
        )
        for (title, program, is_script), append, initrd, typed in variants:
            yield Run(
                title=title,
                program=program,
                is_script=is_script,
                arguments=tuple(_texts("arguments", table)),
                append=append,
                initrd=initrd,
                typed=typed,
                prompt=table.get("prompt"),
                machine=table.get("machine"),
                on=table.get("on"),
                cpus=table.get("cpus", 1),
                memory=_size("memory", table),
                clock=_choice("clock", table, [kind.value for kind in ClockKind]) or _clock(table),
                until=table.get("until"),
                seconds=_seconds("timeout", table),
                options=tuple(_options(table.get("options", {}))),
                ends_on_panic=_choice("on-panic", table, ["end", "continue"]) != "continue",
                has_report=table.get("report", False),
                has_coverage=table.get("coverage", False),
            )

    def _files(self, key: str, table: Table) -> list[InputFile]:
        return [self.files.one(name) for name in _texts(key, table)]

    def _calls(self, table: Table) -> Iterator[Call]:
        inputs = [*_texts("arguments", table), *self._lines(table)]
        function, chunk = table.get("function"), table.get("chunk", CHUNK)
        if not function or not inputs:
            raise UsageError("[[call]]: give a function, and inputs (a file) or arguments")
        if chunk < 1:
            raise UsageError(f"[[call]]: chunk = {chunk}: at least 1")
        for first in range(0, len(inputs), chunk):
            yield Call(
                function=function,
                inputs=tuple(inputs[first : first + chunk]),
                first=first,
                coverage=table.get("coverage", "" if function[:2] in ("0x", "0X") else function),
                machine=table.get("machine"),
                seconds=_seconds("timeout", table) or _CALL_SECONDS,
            )

    def _lines(self, table: Table) -> list[str]:
        name = table.get("inputs")
        return [] if name is None else content(self.base / name, _LARGEST).splitlines()


def _parts(kind: str, table: Table) -> list[Table]:
    parts = table.get(kind, [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UsageError(f"{kind}: write it as [[{kind}]]")
    return parts


def _check(kind: str, table: Table, known: Mapping[str, type | str], others: Mapping[str, Any] = {}) -> None:
    """Raise UsageError for a key that does not exist, or has a value of another type."""
    where = f"[[{kind}]]: " if kind else ""
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, [*known, *others], 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join([*known, *others])}"
            raise UsageError(f"{where}{key[:_SHOWN]}: no such key: {hint}")
        wanted = known[key]
        if isinstance(wanted, str):
            _strings(where + key, value)
        elif not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool):
            raise UsageError(f"{where}{key} = {_shown(value)}: not {_NAMES[wanted]}")
        elif wanted is int and not 0 <= int(table[key]) <= _MOST:
            raise UsageError(f"{where}{key} = {_shown(value)}: not from 0 to {_MOST:,}")


_NAMES: Final[Mapping[type, str]] = {
    str: "a text in quotes",
    int: "a whole number",
    dict: "a table",
    bool: "true or false",
}


def _strings(key: str, value: Any) -> list[str]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise UsageError(f"{key} = {_shown(value)}: not a text, or a list of texts")
    return found


def _shown(value: Any) -> str:
    """A value in a message: the beginning, if it is long."""
    text = f"{value:#x}" if type(value) is int and abs(value) > _MOST else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _or_none(found: Sequence[_T]) -> Sequence[_T | None]:
    """The alternatives, each for a task; if there are none, there is one task without."""
    return found or [None]


def _choice(key: str, table: Table, known: Sequence[str]) -> str | None:
    found: str | None = table.get(key)
    if found is not None and found not in known:
        raise UsageError(f"{key} = {_shown(found)}: one of {', '.join(known)}")
    return found


def _clock(table: Table) -> str:
    """Runs are equal each time, but for those under QEMU."""
    kind = ClockKind.HOST if "on" in table else ClockKind.ICOUNT
    return str(kind.value)


def _options(table: Table) -> Iterator[tuple[str, str | None]]:
    """Options of D; true stands for one that has no value."""
    for name, value in sorted(table.items()):
        yield name, None if value is True else str(value)


def _texts(key: str, table: Table) -> list[str]:
    return _strings(key, table.get(key, []))


def _some(kind: str, key: str, table: Table) -> list[str]:
    found = _texts(key, table)
    if not found:
        raise UsageError(f"[[{kind}]]: {key}: there are none")
    return found


def _seconds(key: str, table: Table) -> float | None:
    return None if key not in table else seconds_of(key, table[key])


def _size(key: str, table: Table) -> int | None:
    return None if key not in table else size_of(key, table[key])
