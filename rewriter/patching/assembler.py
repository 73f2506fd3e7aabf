"""Assembly of amd64 or arm64, an instruction at a time -> bytes, made by keystone in a process of its own.

A process, since keystone ends its own on some input, and may not terminate on other.
"""

import json
import re
import select
import subprocess
from types import TracebackType
from typing import Final, Self

from kinst.rewriter.shell.own_process import own_command, own_environment
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import UsageError

_PATIENCE: Final = 10.0  # seconds for an instruction, and for Python to start: together a tenth of one
_MODULE: Final = "kinst.rewriter.assemble"
_CODE: Final = re.compile(r" \(KS_ERR_\w+\)$")
_IN_WORDS: Final = {
    "Unknown error": "an operand does not fit",
    "Cannot find a symbol": "it names what is no symbol of the image",
    "Invalid mnemonic": "keystone does not know this instruction: write its bytes, hex:...",
}


class Assembler:
    """keystone for one machine and syntax; a context manager."""

    def __init__(self, facts: ArchFacts, *, is_plain: bool) -> None:
        """The process starts with the first instruction."""
        self._arguments = own_command(_MODULE, facts.name, "plain" if is_plain else "own")
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def encode(self, text: str, address: int) -> bytes:
        """The bytes of one instruction, as keystone makes them: they are not yet checked against `text`.

        Raises:
            UsageError: why there are none.
        """
        answer = self._ask(json.dumps([text, address]))
        if answer is None:
            self._stop()
            raise UsageError(f"{text!r}: keystone fails on it: write its bytes, hex:...")
        if not answer.startswith("!"):
            return bytes.fromhex(answer)
        why = _CODE.sub("", answer.strip()).rpartition(": ")[2]
        raise UsageError(f"{text!r}: {_IN_WORDS.get(why, why.lower())}")

    def _ask(self, request: str) -> str | None:
        """The answer to a line; None if the process ends instead, or hangs."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
        except BrokenPipeError:
            return None
        ready, _, _ = select.select([process.stdout], [], [], _PATIENCE)
        return process.stdout.readline().strip() or None if ready else None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(
                self._arguments, stdin=pipe, stdout=pipe, stderr=nowhere, text=True, env=own_environment()
            )
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
