"""What is at the other end may be no stub, a broken one, or a line that loses bytes: one clear line, and soon."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from kinst.runtime.readout.gdb import GdbStub
from kinst.runtime.readout.memory import Space, UnreadableError
from kinst.runtime.readout.packets import Patience
from kinst.targets.errors import MachineError

PATIENCE = Patience(reply=0.3, exchange=2.0)
Reply = Callable[[str], bytes]  # to a request


def framed(text: str) -> bytes:
    """A packet as it should be."""
    return f"${text}#{sum(text.encode()) & 0xFF:02x}".encode()


def willing(request: str) -> bytes:
    """A small stub that answers all that is asked of it. A byte of its memory is the low byte of its address."""
    if request.startswith("m"):
        start, size = (int(text, 16) for text in request[1:].split(","))
        return framed(bytes((start + index) & 0xFF for index in range(size)).hex())
    return framed({"qSupported": "PacketSize=40", "?": "T05", "D": "OK"}.get(request, ""))


@contextmanager
def stub(reply: Reply, *, asked: list[str] | None = None, patience: Patience = PATIENCE) -> Iterator[GdbStub]:
    """A server of one connection."""

    def answer(connection: socket.socket, request: str) -> None:
        if asked is not None:
            asked.append(request)
        connection.sendall(b"+" + reply(request))

    def serve() -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as stream, suppress(OSError, EOFError):
            while data := stream.read1(1 << 16):
                for one in _requests(data):
                    answer(connection, one)

    with socket.create_server(("localhost", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield GdbStub("localhost", server.getsockname()[1], patience)
        finally:
            thread.join(10)  # what was asked last has been read then


def _requests(data: bytes) -> list[str]:
    """The requests in what has come, or that the last reply is to be sent again. Over the loopback they come whole."""
    text = data.decode()
    return ["-"] if text == "-" else [part.rpartition("#")[0] for part in text.split("$")[1:]]


def answering(request: str, answer: bytes) -> Reply:
    """A stub that gives one request another answer, however often; "m" stands for all of memory."""
    return lambda asked: answer if asked in (request, "-") or asked[:1] == request == "m" else willing(asked)


def read(reply: Reply, asked: list[str] | None = None) -> bytes:
    with stub(reply, asked=asked) as source, source.open() as memory:
        return memory.read(Space.VIRTUAL, 0x1000, 100)


def test_memory_comes_in_pieces_as_large_as_the_stub_takes() -> None:
    asked: list[str] = []
    assert read(willing, asked) == bytes(range(100))
    sizes = [int(one.split(",")[1], 16) for one in asked if one.startswith("m")]
    assert sum(sizes) == 100
    assert max(sizes) * 2 + 4 <= 0x40
    assert asked[-1] == "D"


def test_a_reply_is_asked_for_again_that_did_not_arrive_whole() -> None:
    answers = iter([b"$T05#00", framed("T05")])

    def once_wrong(request: str) -> bytes:
        return next(answers) if request in "?-" else willing(request)

    with stub(once_wrong) as source, source.open() as memory:
        assert memory.read(Space.VIRTUAL, 0, 4) == bytes(range(4))


def test_a_reply_may_have_runs_and_come_behind_news() -> None:
    answers = iter([b"%Stop:T05#00" + framed("0* "), framed("0000")])  # 0 and three more

    def terse(request: str) -> bytes:
        return next(answers) if request.startswith("m") else willing(request)

    with stub(terse) as source, source.open() as memory:
        assert memory.read(Space.VIRTUAL, 0, 4) == bytes(4)


WRONG = {
    "?": {
        b"$W00#b7": "its guest is not halted, and cannot be read \\(W00\\)",
        framed(""): "its guest is not halted, and cannot be read \\(no answer\\)",
        b"$T05#00": "its replies do not arrive intact: the checksum was wrong 3 times",
        b"$T05#zz": "its replies do not arrive intact: the checksum was wrong 3 times",
        b"": "no reply for 0.3 seconds: is it a gdb stub, and is it free\\?",
        b"HTTP/1.1 400 Bad Request\r\n\r\n": "no reply for 0.3 seconds",
        b"$" + b"x" * (1 << 21): "a reply of more than 1048576 bytes",
    },
    "m": {
        framed("E01"): "cannot read virtual address 0x1000 \\(E01\\)",
        framed("E.no such memory"): "cannot read virtual address 0x1000 \\(E.no such memory\\)",
        framed("E.\033[2J"): "cannot read virtual address 0x1000 \\(E.\\\\x1b\\[2J\\)",
        framed(""): "cannot read virtual address 0x1000 \\(no m\\)",
        framed("0"): "0x1000: a reply that is not in the protocol \\(0\\)",
        framed("00" * 99): "0x1000: a reply that is not in the protocol",
        framed("zz"): "0x1000: a reply that is not in the protocol \\(zz\\)",
        framed("*~"): "a reply that is not in the protocol",
        framed("0*"): "a reply that is not in the protocol",
        framed("0" + "*~" * 20_000): "a reply that is not in the protocol",
    },
}


@pytest.mark.parametrize(("request_", "answer", "why"), [(r, a, w) for r, one in WRONG.items() for a, w in one.items()])
def test_what_is_no_reply_is_told_in_one_line(request_: str, answer: bytes, why: str) -> None:
    with pytest.raises(MachineError, match=rf"^gdb:localhost:[0-9]+: {why}") as failed:
        read(answering(request_, answer))
    assert "\n" not in str(failed.value)


def test_a_monitor_that_prints_without_end_is_cut_off() -> None:
    def printing(request: str) -> bytes:
        return framed("O" + "41" * 30_000) * 4 if request.startswith("qRcmd") else willing(request)

    patient = stub(printing, patience=Patience(reply=60.0))
    prints_too_much = pytest.raises(MachineError, match=r"its monitor prints more than 65,536 characters$")
    with patient as source, prints_too_much, source.open():
        pass


@pytest.mark.parametrize("answer", ["E01", "04"])
def test_replies_that_lead_nowhere_are_given_up(answer: str) -> None:
    """Each comes at once; memory of a byte at a time earns a thousandth of a second."""
    refusing = stub(answering("m", framed(answer)))
    with refusing as source, pytest.raises(MachineError, match="given up after 2"), source.open() as memory:
        while True:
            with suppress(UnreadableError):
                memory.read(Space.VIRTUAL, 0x1000, 1)
                time.sleep(0.01)


def test_nothing_is_awaited_behind_the_end_of_the_command() -> None:
    patience = Patience(end=time.monotonic() + 0.4)
    with stub(answering("?", b""), patience=patience) as source, pytest.raises(MachineError, match="given up after 0"):
        source.open().__enter__()


def test_a_guest_is_let_go_whatever_was_wrong() -> None:
    asked: list[str] = []
    with pytest.raises(MachineError):
        read(answering("m", framed("zz")), asked)
    assert asked[-1] == "D"


@pytest.mark.parametrize("request_", ["qSupported", "?", "m1000,1c", "D"])
def test_a_connection_that_is_closed_is_told_in_one_line(request_: str) -> None:
    def closing(asked: str) -> bytes:
        if asked == request_:
            raise EOFError
        return willing(asked)

    with pytest.raises(MachineError, match=r"closed the connection|the connection is lost"):
        read(closing)


def test_nobody_listens() -> None:
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(MachineError, match=f"^gdb:localhost:{port}: cannot connect: Connection refused$"):
        GdbStub("localhost", port).open().__enter__()
