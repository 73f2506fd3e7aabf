"""QEMU's gdb stub -> breakpoints in a guest that runs, and the registers of the CPU that is at one.

Unlike `kinst.runtime.readout.gdb`, which halts a guest to read its memory, this lets it run, and looks now and then
whether it has stopped. While it is stopped its clock is, too.
"""

import re
import socket
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final
from xml.etree import ElementTree

from kinst.runtime.readout.packets import Packets, Patience, StubError

_NAME: Final = "QEMU's gdb stub"
_PATIENCE: Final = Patience(reply=20.0, exchange=float("inf"))  # as long as for the monitor; and for the whole run
_PIECE: Final = 0x400  # bytes of a description that are asked for at a time
# SIGTRAP; other signals are the monitor's doing.
_STOPPED: Final = re.compile(r"T05(?:.*;)?thread:(p[0-9a-f]+\.[0-9a-f]+);")
_READ: Final = re.compile(r"rwatch:([0-9a-f]+)")
_INCLUDE: Final = "{http://www.w3.org/2001/XInclude}include"
_UNDECLARED: Final = ("<target>", '<target xmlns:xi="http://www.w3.org/2001/XInclude">')  # QEMU 7.2 leaves it out
_KIND: Final = 4  # bytes of an instruction, which QEMU does not look at


class Debugger:
    """A connection to the stub of one QEMU, whose guest is paused and has not begun."""

    def __init__(self, connection: socket.socket) -> None:
        """Say hello. Raises StubError: no stub is there."""
        self._connection = connection
        self._packets = Packets(_NAME, connection, _PATIENCE)
        self._packets.ask("qSupported:multiprocess+;xmlRegisters=aarch64,riscv64")
        self._numbers = dict(
            _numbered(self._described("target.xml"))
        )  # QEMU gives single registers only to who has read it
        self._breakpoints: tuple[int, ...] = ()
        self._watched: tuple[int, ...] = ()
        self._read: int | None = None
        self._cpu = ""
        self._has_left = False
        self._processes = (1, *self._attached())

    def _attached(self) -> Iterator[int]:
        """Attach to what QEMU calls processes, of which it attaches to the first alone: the clusters of a board's CPUs
        (`sifive_u`, `xlnx-versal-virt`). The stop of a CPU that is not in one of ours would name another CPU."""
        for process in count(2):
            if not _STOPPED.match(self._packets.ask(f"vAttach;{process:x}")):
                return
            yield process

    def set_breakpoints(self, addresses: Iterable[int]) -> None:
        """Let the guest, which does not run now, stop before it executes these instructions, and no others. Raises
        StubError."""
        before, self._breakpoints = self._breakpoints, tuple(dict.fromkeys(addresses))
        for address in before:
            if address not in self._breakpoints:
                self._remove(address)
        for address in self._breakpoints:
            if address not in before:
                self._insert(address)

    def watch_reads(self, addresses: Iterable[int]) -> None:
        """Let the guest stop when it reads a byte as data, not as an instruction: at as many as there can be, a few
        with KVM. Raises StubError: there can be none."""
        self._watched = tuple(one for one in addresses if self._packets.ask(f"Z3,{one:x},1") == "OK")
        if not self._watched:
            raise StubError(f"{_NAME}: cannot watch for reads")

    @property
    def watched(self) -> int | None:
        """The watched byte that the guest has stopped for; None: something else stopped it."""
        return self._read

    @property
    def has_left(self) -> bool:
        """Whether the guest is not stopped any more: after `leave` or `close`."""
        return self._has_left

    def has_stopped(self) -> bool:
        """Whether the guest is at a breakpoint, or at a read that is watched; `register` reads the CPU that is. Raises
        StubError: the connection is lost, as it is when QEMU has ended."""
        return not self._has_left and self._packets.has_more() and self._is_stop(self._packets.reply())

    def wait(self, seconds: float) -> bool:
        """Wait until `has_stopped` has something to read; returns whether it has."""
        return self._packets.has_more(seconds)

    def _is_stop(self, reply: str) -> bool:
        found = _STOPPED.match(reply)
        if found is not None:
            self._cpu = found[1]
            self._expect_ok(f"Hg{self._cpu}")
            place = _READ.search(reply)
            self._read = None if place is None else int(place[1], 16)
        return found is not None

    def register(self, number: int) -> int:
        """The value of a register by its number in the protocol. Raises StubError."""
        text = self._packets.ask(f"p{number:x}")
        if not re.fullmatch("(?:[0-9a-f]{2}){4,8}", text):
            raise StubError(f"{_NAME}: has no register {number}: {text or 'no answer'}")
        return int.from_bytes(bytes.fromhex(text), "little")

    def named_register(self, name: str) -> int:
        """The value of a register that only the stub's own description has. Raises StubError: it has none."""
        if name not in self._numbers:
            raise StubError(f"{_NAME}: has no register {name}: a newer QEMU has it")
        return self.register(self._numbers[name])

    def go_on(self, address: int) -> None:
        """Continue from a breakpoint: past its instruction, for which the other CPUs wait. Raises StubError."""
        is_there = address in self._breakpoints  # if not, the CPU was stopped by something else
        if is_there:
            self._remove(address)
            self._packets.send(f"vCont;s:{self._cpu}")
            self._is_stop(self._packets.reply())
            self._insert(address)
        self._packets.send("c")

    def go_on_watching(self, addresses: Iterable[int]) -> None:
        """Continue from a read that was watched, and watch these from now on. QEMU may have stopped before it was done,
        and would again and again. Raises StubError."""
        self._watch_nothing()
        self._packets.send(f"vCont;s:{self._cpu}")
        self._is_stop(self._packets.reply())
        self.watch_reads(addresses)
        self._packets.send("c")

    def _watch_nothing(self) -> None:
        for address in self._watched:
            self._expect_ok(f"z3,{address:x},1")
        self._watched = ()

    def leave(self) -> None:
        """Remove the breakpoints, and let a stopped guest go on without them. Raises StubError."""
        self._has_left = True
        for address in self._breakpoints:
            self._remove(address)
        self._watch_nothing()
        for process in self._processes[:-1]:
            self._expect_ok(f"D;{process:x}")
        self._packets.send_last(
            f"D;{self._processes[-1]:x}"
        )  # the guest may end before it could be acknowledged that this has been done

    def close(self) -> None:
        """Give the connection up."""
        self._has_left = True
        self._connection.close()

    def _insert(self, address: int) -> None:
        self._expect_ok(f"Z1,{address:x},{_KIND}")

    def _remove(self, address: int) -> None:
        self._expect_ok(f"z1,{address:x},{_KIND}")

    def _expect_ok(self, request: str) -> None:
        if (reply := self._packets.ask(request)) != "OK":
            raise StubError(f"{_NAME}: does not do {request}: {reply or 'no answer'}")

    def _described(self, document: str) -> Iterator[ElementTree.Element]:
        """The registers of a document and of those that it includes."""
        for one in ElementTree.fromstring(self._document(document).replace(*_UNDECLARED)).iter():
            if one.tag == _INCLUDE:
                yield from self._described(one.attrib["href"])
            elif one.tag == "reg":
                yield one

    def _document(self, name: str) -> str:
        found = ""
        while True:
            reply = self._packets.ask(f"qXfer:features:read:{name}:{len(found):x},{_PIECE:x}")
            found += reply[1:]
            if reply[:1] != "m":
                return found


def _numbered(registers: Iterable[ElementTree.Element]) -> Iterator[tuple[str, int]]:
    """Names in small letters, and numbers: one more than that of the register before where none is given (GDB manual,
    G.2.7)."""
    number = -1
    for one in registers:
        number = int(one.attrib.get("regnum", number + 1))
        yield one.attrib["name"].lower(), number
