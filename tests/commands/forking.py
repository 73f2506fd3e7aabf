"""Commands for shells, as processes that begin where one has imported all that they need.

A test of many commands would import numpy, LIEF and an engine for each, which takes longer than what they do. Here a
server imports them once and forks itself: what it forks has the caller's streams, folder, environment and words, and
ends with the command's status. That commands start alone is what `tests/rewriter/test_start_up.py` is for.

What a shell starts is a small client, which hands its streams over and waits.
"""

import gc
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from kinst.rewriter.arch.registry import dissector
from kinst.targets.arch.registry import NAMES, arch_by_name
from tests.commands.launchers import ENVIRONMENT

_IMPORTED: Final = (
    *("lief", "capstone", "keystone", "qiling", "unicorn", "zstandard", "elftools.elf.elffile"),
    *("kinst.rewriter.cli", "kinst.rewriter.inlining.inlinecall_cli", "kinst.rewriter.diffing.diff_report"),
    *("kinst.rewriter.inlining.inlinecall_answer", "kinst.rewriter.list_command", "kinst.rewriter.rewrite_command"),
    *("kinst.runtime.cli", "kinst.runtime.api", "kinst.runtime.engine.qiling_machine", "kinst.runtime.batch.cli"),
    *("kinst.runtime.tracing.run_command", "kinst.samples.command"),
)
_LISTENING: Final = "listening\n"
_STREAMS: Final = 3
# -I and -S: nothing is imported but these four.
_CLIENT: Final = """#!{python} -IS
import _socket, json, os, sys
end = _socket.socket(_socket.AF_UNIX)
end.connect({path!r})
asked = json.dumps([{what!r}, sys.argv, os.getcwd(), dict(os.environ)]).encode()
streams = b"".join(at.to_bytes(4, sys.byteorder) for at in range(3))
end.sendmsg([len(asked).to_bytes(4, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
end.sendall(asked)
os.closerange(0, 3)
status = end.recv(1)
os._exit(status[0] if status else 125)
"""


class Forking:
    """The server, from its client's side."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def client(self, launcher: Path, what: str) -> None:
        """Write a program that runs `what`: a function without parameters as ``module:function``, which finds its words
        in `sys.argv`; or, if that is empty, the Python program that is its first word."""
        launcher.write_text(_CLIENT.format(python=sys.executable, path=str(self._path), what=what))
        launcher.chmod(0o755)


@contextmanager
def forking(folder: Path) -> Iterator[Forking]:
    """A server, with its socket in `folder`, for as long as the context lasts."""
    path = folder / "commands"
    command = [sys.executable, "-c", f"from {__name__} import serve; serve({str(path)!r})"]
    environment = ENVIRONMENT | {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == _LISTENING.encode()
            yield Forking(path)
        finally:
            server.kill()


def serve(path: str) -> NoReturn:
    """Import, and fork for whoever asks, until somebody ends it."""
    for name in _IMPORTED:
        import_module(name)
    for name in NAMES:
        dissector(arch_by_name(name))  # makes its tables
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    print(_LISTENING, end="", flush=True)
    children = set[int]()
    while True:
        end, _ = listener.accept()
        if (child := os.fork()) == 0:
            listener.close()
            os._exit(_answer(end))
        children.add(child)
        end.close()
        children -= {one for one in children if os.waitpid(one, os.WNOHANG)[0]}


def _answer(end: socket.socket) -> int:
    """In a process of its own."""
    header, streams, _, _ = socket.recv_fds(end, 4, _STREAMS)
    asked = b""
    while len(asked) < int.from_bytes(header, "little"):
        asked += end.recv(1 << 16)
    what, words, folder, environment = json.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    status = _run(what, words, environment)
    end.send(bytes([status]))
    return status


def _run(what: str, words: list[str], environment: Mapping[str, str]) -> int:
    """The status of what a process is asked for. As Python's own main does it, which has no function for that."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = words
    try:
        if what:
            module, _, function = what.partition(":")
            getattr(import_module(module), function)()
        else:
            exec(compile(sys.argv.pop(1), "<string>", "exec"), {"__name__": "__main__"})
        code: object = None
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    return code & 0xFF if isinstance(code, int) else int(code is not None)
