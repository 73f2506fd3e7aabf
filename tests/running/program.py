"""programs.toml -> programs, with what makes them work."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

_TABLE: Final = Path(__file__).parent / "programs.toml"
_LIBRARIES: Final = {"amd64": "x86_64", "arm64": "aarch64", "riscv64": "riscv64"}
_VARIABLE: Final = re.compile(r"([A-Z][A-Za-z0-9_]*)=(\S*)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Case:
    """A command line, run in the folder /work without a shell. `stdin` is a file there."""

    command: str
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None

    def __str__(self) -> str:
        """As one would type it."""
        variables = "".join(f"{name}={value} " for name, value in self.environment.items())
        return f"{variables}{self.command}" + (f" < {self.stdin}" if self.stdin else "")


@dataclass(frozen=True, slots=True)
class Program:
    """Packages, files of these that are patched, and cases, which are run one after the other in one folder. `sources`
    are C or C++ programs that are compiled for it; `seconds` is how long a case may take; `is_timed`: stderr tells
    how fast it was, and is not compared."""

    name: str
    packages: tuple[str, ...]
    files: tuple[str, ...]
    cases: tuple[Case, ...]
    machine: str = "amd64"
    suite: str = "trixie"
    sources: tuple[str, ...] = ()
    seconds: int = 300
    is_timed: bool = False

    @property
    def triplet(self) -> str:
        """What Debian calls the machine where its libraries and compilers are."""
        return f"{_LIBRARIES[self.machine]}-linux-gnu"


def programs() -> dict[str, Program]:
    """All of the table, by name."""
    table = tomllib.loads(_TABLE.read_text())
    masks = table.pop("masks")
    return {name: _program(name, entry, masks) for name, entry in table.items()}


def _program(name: str, entry: dict[str, Any], masks: Mapping[str, Sequence[str]]) -> Program:
    machine = entry.get("machine", "amd64")
    library = f"/usr/lib/{_LIBRARIES[machine]}-linux-gnu"
    environments, words = masks.get(entry.get("masks", ""), ("",)), entry.get("each", {})
    lines = [line for line in entry["cases"].replace("%lib%", library).splitlines() if line]
    found = [_case(f"{mask} {each}".strip()) for mask in environments for line in lines for each in _each(line, words)]
    files = tuple(file.replace("%lib%", library) for file in entry["files"])
    more = {key: entry[key] for key in ("machine", "suite", "seconds", "is_timed") if key in entry}
    return Program(name, tuple(entry["packages"]), files, tuple(found), sources=tuple(entry.get("sources", ())), **more)


def _each(line: str, words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A line with each word in place of its name, in all combinations."""
    names = [name for name in words if f"%{name}%" in line]
    for chosen in product(*(words[name] for name in names)):
        found = line
        for name, word in zip(names, chosen, strict=True):
            found = found.replace(f"%{name}%", word)
        yield found


def _case(line: str) -> Case:
    environment, stdin = dict[str, str](), None
    while found := _VARIABLE.match(line):
        environment[found[1]] = found[2]
        line = line[found.end() :]
    if " < " in line and len(shlex.split(line.rpartition(" < ")[2])) == 1:
        line, _, stdin = line.rpartition(" < ")
    return Case(line, environment, stdin)
