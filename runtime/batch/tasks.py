"""The tasks of a batch: each is one image, and one thing to do with it.

A task contains everything that its rows depend on, with files by their content. So its digest names its result: what
was done under that name is never done again, on this machine or another.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kinst.targets.values import dataclass

FORMAT: Final = 1  # of tasks and rows: a change of what they mean is another digest
DIGEST_LENGTH: Final = 32  # hexadecimal digits: 128 bits


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file: the name that the user gave, and a digest of its content."""

    name: str
    sha256: str
    size: int


Places = Mapping[str, Path]  # where files are on this machine, by the SHA-256 of their content


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Put probes into the image, and prove that the result is right. `probes`: descriptions, separated by commas."""

    probes: str
    method: str | None = None

    @property
    def what(self) -> str:
        """A few words for a table."""
        return self.probes

    @property
    def given(self) -> str:
        """Which of several inputs it gets."""
        return ""

    def files(self) -> Iterator[InputFile]:
        """The files that it needs besides the image."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Run:
    """Boot the image, and trace it with a D program. Times are in seconds."""

    title: str  # of the program: its file, or its text
    program: str  # its text; empty: what the image was patched with
    is_script: bool = False  # whether it came from a file
    arguments: tuple[str, ...] = ()
    append: str | None = None
    initrd: InputFile | None = None
    typed: InputFile | None = None
    prompt: str | None = None
    machine: str | None = None
    on: str | None = None  # the command that starts QEMU, in place of our machine
    cpus: int = 1
    memory: int | None = None
    clock: str = "icount"
    until: str | None = None
    seconds: float | None = None
    options: tuple[tuple[str, str | None], ...] = ()
    ends_on_panic: bool = True
    has_report: bool = False  # whether there shall be a page about it
    has_coverage: bool = False  # and a file of what ran

    @property
    def what(self) -> str:
        """A few words for a table."""
        return self.title

    @property
    def given(self) -> str:
        """Which of several inputs it gets."""
        parts = [self.append or "", *(file.name for file in self.files())]
        return ", ".join(filter(None, parts))

    def files(self) -> Iterator[InputFile]:
        """The files that it needs besides the image."""
        return (file for file in (self.initrd, self.typed) if file is not None)


@dataclass(frozen=True, slots=True)
class Call:
    """Call a function with each of several inputs, and record which instructions they reach."""

    function: str
    inputs: tuple[str, ...]  # arguments as in a call: '1, "text"'
    first: int  # the number of the first of these inputs among all
    coverage: str  # functions whose instructions are counted: a pattern of names; empty: none
    machine: str | None = None
    seconds: float = 0.1  # of the machine, for each input

    @property
    def what(self) -> str:
        """A few words for a table."""
        return f"{self.function}()"

    @property
    def given(self) -> str:
        """Which of several inputs it gets."""
        return f"inputs {self.first:,} to {self.first + len(self.inputs) - 1:,}"

    def files(self) -> Iterator[InputFile]:
        """The files that it needs besides the image."""
        return iter(())


Work = Rewrite | Run | Call
KINDS: Final[Mapping[type, str]] = {Rewrite: "rewrite", Run: "run", Call: "call"}


@dataclass(frozen=True, slots=True)
class Task:
    """An image, and what to do with it. `version` is that of kinst-rewrite: another one may give other results."""

    image: InputFile
    work: Work
    version: str

    @property
    def kind(self) -> str:
        """rewrite, run or call."""
        return KINDS[type(self.work)]

    def files(self) -> Iterator[InputFile]:
        """All files that it needs: the image first."""
        yield self.image
        yield from self.work.files()

    def digest(self) -> str:
        """The name of its result."""
        value: dict[str, Any] = {"format": FORMAT, "kind": self.kind, **asdict(self)}
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
