"""kinst-run --gdb with a client: one that speaks the protocol by itself, or gdb with a script of its own commands."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from kinst.runtime.readout.packets import Packets, Patience
from tests.commands.in_process import kinst_run

GDB = shutil.which("gdb-multiarch")
needs_gdb = pytest.mark.skipif(GDB is None, reason="needs gdb-multiarch")
_LONG = Patience(reply=60, exchange=600)


class Client:
    """A connection to the door, by the client side that `kinst-run --read gdb:` uses."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self._socket.connect(str(path))
                break
            except OSError:
                time.sleep(0.01)
        self.packets = Packets("kinst-run", self._socket, _LONG)
        self.ask("qSupported:swbreak+;hwbreak+")
        assert self.ask("QStartNoAckMode") == "OK"
        self.packets.stop_acknowledging()

    def ask(self, request: str) -> str:
        return self.packets.ask(request)

    def interrupt(self) -> str:
        """Ctrl-C."""
        self._socket.sendall(b"\x03")
        return self.packets.reply()

    def register(self, number: int) -> int:
        return int.from_bytes(bytes.fromhex(self.ask(f"p{number:x}")), "little")

    def monitor(self, line: str) -> str:
        return bytes.fromhex(self.ask(f"qRcmd,{line.encode().hex()}")).decode()

    def close(self) -> None:
        self._socket.close()


def debugged(
    image: Path, folder: Path, use: Callable[[Client], None], *words: str, timeout: str = "60s"
) -> CompletedProcess[str]:
    """Run a command, with `use` in a thread of its own. What it raises is raised here."""
    path, raised = folder / "door", list[BaseException]()

    def talk() -> None:
        client = Client(path)
        try:
            use(client)
        except BaseException as error:
            raised.append(error)
        finally:
            client.close()

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    done = kinst_run(image, "--gdb", f"unix:{path}", "--wall-timeout", timeout, *words)
    thread.join(60)
    if raised:
        raise raised[0]
    return done


def with_gdb(
    image: Path, folder: Path, script: Sequence[str], *words: str, symbols: Path | None = None, seconds: int = 120
) -> tuple[str, CompletedProcess[str]]:
    """Run a command, and gdb with a script of its own commands. What gdb has said, and the command's output."""
    assert GDB is not None
    path, said = folder / "door", list[str]()
    lines = ["set pagination off", "set confirm off", "set remotetimeout 120", f"target remote {path}", *script]
    commands = [word for line in lines for word in ("-ex", line)]

    def talk() -> None:
        while not path.exists():
            time.sleep(0.01)
        gdb = [GDB, "-nx", "-batch", "-q", str(symbols or image), *commands]
        done = subprocess.run(gdb, capture_output=True, text=True, timeout=seconds, check=False)
        said.append(done.stdout + done.stderr)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    done = kinst_run(image, "--gdb", f"unix:{path}", "--wall-timeout", f"{seconds}s", *words)
    thread.join(seconds)
    assert said, "gdb did not end"
    return said[0], done
