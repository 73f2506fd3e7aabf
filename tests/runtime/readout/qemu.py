"""A real QEMU with a gdb stub, and its monitor to look behind the stub's back."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kinst.runtime.readout.packets import Packets, Patience
from tests.samples.machines import MACHINES


class Emulator:
    """A QEMU that runs. `port` is its stub's."""

    def __init__(self, port: int, monitor: socket.socket, folder: Path) -> None:
        self.port = port
        self.folder = folder
        self._monitor = monitor.makefile("rw")
        self._monitor.readline()
        self.tell("qmp_capabilities")

    @property
    def source(self) -> str:
        """What --read takes."""
        return f"gdb:localhost:{self.port}"

    def tell(self, command: str, **arguments: Any) -> Any:
        """Carry out a command of the monitor."""
        self._monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._monitor.flush()
        while True:
            reply = json.loads(self._monitor.readline())
            assert "error" not in reply, reply
            if "return" in reply:
                return reply["return"]

    def status(self) -> str:
        """What the guest does: running, paused, prelaunch, shutdown."""
        return str(self.tell("query-status")["status"])

    def wait_for(self, status: str) -> None:
        """Wait until the guest does that."""
        deadline = time.monotonic() + 60
        while self.status() != status and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.status() == status

    def run_to(self, address: int) -> None:
        """Let a guest run that -S holds, until it comes to an address: there it stays."""
        with socket.create_connection(("localhost", self.port)) as connection:
            packets = Packets("QEMU", connection, Patience(reply=60, exchange=600))
            assert packets.ask("?")[0] == "T"
            assert packets.ask(f"Z1,{address:x},4") == "OK"
            assert packets.ask("c")[0] == "T"
            assert packets.ask(f"z1,{address:x},4") == "OK"

    def save(self, address: int, size: int) -> Path:
        """Its memory at a physical address, in a file."""
        path = self.folder / f"memory-{address:x}"
        self.tell("pmemsave", val=address, size=size, filename=str(path))
        return path

    def dump(self) -> Path:
        """All of its memory, as an ELF core."""
        path = self.folder / "core"
        self.tell("dump-guest-memory", paging=False, protocol=f"file:{path}")
        return path


@contextmanager
def emulator(machine: str, folder: Path, *words: str) -> Iterator[Emulator]:
    """QEMU for a machine, with more words on its command line."""
    command = MACHINES[machine].qemu
    if shutil.which(command[0]) is None:
        assert not os.environ.get("KINST_REQUIRE_TOOLS"), f"no {command[0]}"
        pytest.skip(f"no {command[0]}")
    monitor, port = folder / "monitor", _free_port()
    options = ("-display", "none", "-serial", "null", "-m", "128", "-no-reboot", "-no-shutdown")
    doors = ("-gdb", f"tcp:localhost:{port}", "-qmp", f"unix:{monitor},server=on,wait=off")
    process = subprocess.Popen([*command, *options, *doors, *words], stdin=subprocess.DEVNULL)
    try:
        with _connected(monitor, process) as connection:
            yield Emulator(port, connection, folder)
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _connected(path: Path, process: "subprocess.Popen[bytes]") -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
            return connection
        except OSError:
            connection.close()
            assert process.poll() is None, "QEMU ended"
            assert time.monotonic() < deadline
            time.sleep(0.01)
