"""QEMU's devices without a guest: accesses that it is asked for one by one, over its test protocol."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LETTERS: Final = {1: "b", 2: "w", 4: "l"}


class Qtest:
    """A board of QEMU's whose CPUs never run, at physical addresses."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _ask(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, file=self._process.stdin, flush=True)
        for answer in self._process.stdout:
            if answer.startswith(("OK", "FAIL", "ERR")):
                return answer
        raise AssertionError(f"QEMU ended: {command}")

    def read(self, address: int, size: int) -> int:
        return int(self._ask(f"read{_LETTERS[size]} {address:#x}").split()[1], 16)

    def write(self, address: int, size: int, value: int) -> None:
        assert self._ask(f"write{_LETTERS[size]} {address:#x} {value:#x}").startswith("OK")


@contextmanager
def qtest(machine: str, *words: str) -> Iterator[Qtest]:
    """Such a board, until the end."""
    fixed = ("-display", "none", "-serial", "null", "-monitor", "none", "-S", "-qtest", "stdio", "-qtest-log", "none")
    command = ("qemu-system-aarch64", "-M", machine, *fixed, *words)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Qtest(process)
        finally:
            process.kill()
