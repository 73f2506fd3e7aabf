"""gdb looks at the guest while a probe fires: what it says of the arguments of inlined copies is the reference.

Runs inside gdb too, which has a Python of its own and none of our packages: there `answer` is called. Outside, `Gdb`
serves gdb's remote protocol with the registers and the memory of the firing, so both see the very same state.
"""

import json
import re
import select
import socket
import subprocess
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

# Registers of gdb's `g` packet, in its order: names as the trap frame has them.
LAYOUTS: dict[str, tuple[str, ...]] = {
    "amd64": (*("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"), *(f"r{n}" for n in range(8, 16)), "rip"),
    "arm64": (*(f"x{n}" for n in range(31)), "sp", "pc"),
    "riscv64": (),  # x0 to x31 and pc: the trap frame's own order
}
OUT = "out"  # gdb says <optimized out>, or that it cannot tell
STRUCT = "struct"
_MARK = "KINST "
Read = Callable[[int, int], bytes]  # memory; raises what `Gdb` was told that it may


class Answer(NamedTuple):
    """Values by name, `OUT` where gdb cannot tell: of a copy's parameters (None: gdb sees no such copy there), and what
    the parameters of the function around were when it was entered, in their order.

    gdb 13 computes entry values of a copy's parameters in the wrong frame: that of the function around, not its
    caller's. Of the function's own parameters they are right.
    """

    copy: dict[str, str | int] | None
    entered: dict[str, str | int]


class State(NamedTuple):
    """A stopped CPU."""

    registers: Sequence[int]  # as in the `g` packet
    read: Read


class Gdb:
    """A gdb of one image."""

    def __init__(self, image: Path, faults: tuple[type[Exception], ...]) -> None:
        """`faults` are what reading bad memory raises."""
        self._faults = faults
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._process = subprocess.Popen(
            ["gdb-multiarch", "-nx", "-q", str(image)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
        )  # fmt: skip
        self._socket: socket.socket | None = None
        self._state = State((), lambda _address, _size: b"")
        for line in (
            "set pagination off",
            "set confirm off",
            "set stack-cache off",
            "set code-cache off",
            "set print entry-values no",
            f"python import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import gdb_state",
        ):
            self._say(line)

    def __enter__(self) -> "Gdb":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._listener.close()
        if self._socket is not None:
            self._socket.close()

    def arguments(self, state: State, function: str) -> Answer:
        """The parameters of the innermost copy of `function` at the PC."""
        if self._socket is None:
            self._state = State([0] * len(state.registers), state.read)  # where no copy is: gdb hides none
            self._say(f"target remote 127.0.0.1:{self._listener.getsockname()[1]}")
            self._ask("python gdb_state.ready()")
        self._state = state
        return Answer(*self._ask(f"python gdb_state.answer({function!r})"))

    def _ask(self, command: str) -> Any:
        self._say(command)
        assert self._process.stdout is not None
        said = b""
        while True:
            waiting: list[Any] = [self._process.stdout, self._socket or self._listener]
            for one in select.select(waiting, [], [], 60)[0]:
                if one is self._listener:
                    self._socket = self._listener.accept()[0]
                elif one is self._socket:
                    assert self._serve(), said
                else:
                    said += self._process.stdout.read(1 << 16)
            found = re.search(rb"KINST (.*)\n", said)
            if found:
                return json.loads(found[1])

    def _say(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())

    # -- the remote protocol ------------------------------------------------------------------------------------------

    def _serve(self) -> bool:
        """Whether gdb is still there."""
        assert self._socket is not None
        data = self._socket.recv(1 << 16)
        for packet in re.findall(rb"\$([^#]*)#..", data):
            reply = self._reply(packet.decode())
            self._socket.sendall(f"+${reply}#{sum(reply.encode()) & 255:02x}".encode())
        return bool(data)

    def _reply(self, packet: str) -> str:
        fixed = {"?": "S05", "qSupported": "PacketSize=1000", "qAttached": "1", "qfThreadInfo": "m1", "qC": "QC1"}
        fixed |= {"qsThreadInfo": "l"}
        if packet == "g":
            return b"".join(value.to_bytes(8, "little") for value in self._state.registers).hex()
        if packet.startswith("m"):
            return self._memory(*(int(part, 16) for part in packet[1:].split(",")))
        if packet.startswith("H"):
            return "OK"
        return fixed.get(packet.split(":")[0], "")

    def _memory(self, address: int, size: int) -> str:
        try:
            return self._state.read(address, size).hex()
        except self._faults:
            return "E01"


# -- in gdb -----------------------------------------------------------------------------------------------------------


def ready() -> None:
    """Connected."""
    print(_MARK + "null", flush=True)


def answer(function: str) -> None:
    """Prints what an `Answer` is made of."""
    gdb = import_module("gdb")
    gdb.execute("maint flush register-cache", to_string=True)
    gdb.execute("maint flush dcache", to_string=True)
    copy, frame = None, gdb.newest_frame()
    while frame is not None and frame.type() == gdb.INLINE_FRAME:
        if frame.name() == function and copy is None:
            copy = {one.name: _value(gdb, frame.read_var, one) for one in _parameters(frame)}
        frame = frame.older()
    entered = {}
    if frame is not None and frame.function() is not None:
        frame.select()
        entered = {one.name: _value(gdb, gdb.parse_and_eval, f"{one.name}@entry") for one in _parameters(frame)}
    print(_MARK + json.dumps([copy, entered]), flush=True)


def _parameters(frame: Any) -> list[Any]:
    block = frame.block()
    while block.function is None:
        block = block.superblock
    return [one for one in block if one.is_argument]


def _value(gdb: Any, read: Callable[[Any], Any], what: Any) -> str | int:
    try:
        value = read(what)
        if value.type.strip_typedefs().code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            return STRUCT
        if value.is_optimized_out or "synthetic pointer" in value.format_string():
            return OUT
        return int(value) & (1 << 64) - 1
    except gdb.error:
        return OUT
