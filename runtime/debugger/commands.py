"""Packets of a debugger while the guest is stopped -> replies, or how the guest goes on.

What is not known gets an empty reply, as the protocol wants it. Packets may hold anything: whatever does not parse is
an error reply. (GDB manual, appendix E, "Packets" and "General Query Packets".)
"""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from kinst.runtime.debugger.backwards import Back, Backwards, Way
from kinst.runtime.debugger.memory import DebuggedMemory
from kinst.runtime.debugger.monitor import Monitor
from kinst.runtime.debugger.points import BREAKPOINTS, WATCHPOINTS, Points
from kinst.runtime.debugger.registers import Registers
from kinst.runtime.debugger.resuming import Resumption, resumption
from kinst.runtime.debugger.stops import NO_ABILITIES, Abilities, Cause, Stop, reply
from kinst.runtime.machine.system import System
from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_PACKET: Final = 0x4000  # bytes of the largest packet
_MOST: Final = _PACKET // 2 - 8  # bytes of memory in one
_SUPPORTED: Final = f"PacketSize={_PACKET:x};QStartNoAckMode+;qXfer:features:read+;vContSupported+;swbreak+;hwbreak+"
_BACK: Final = ";ReverseStep+;ReverseContinue+"
_WAYS: Final = {"s": Way.STEP, "c": Way.CONTINUE}
_WORD: Final = (1 << 64) - 1
_ERROR: Final = b"E01"
_OK: Final = b"OK"


class Leaving(Enum):
    """How a debugger leaves."""

    DETACHED = auto()
    KILLED = auto()


Outcome = bytes | Resumption | Back | Leaving | None  # a reply; None: there is none


@dataclass(frozen=True, slots=True)
class Debugged:
    """What a debugger works on."""

    system: System
    registers: Registers
    memory: DebuggedMemory
    points: Points
    monitor: Monitor
    backwards: Backwards


class Commands:
    """One connection's."""

    def __init__(self, debugged: Debugged, stop_acknowledging: Callable[[], None]) -> None:
        """The guest is stopped; `stopped` says why."""
        self._all, self._stop_acknowledging = debugged, stop_acknowledging
        self._abilities = NO_ABILITIES
        self._stop = Stop(Cause.ATTACHED, 0)
        self._selected = 0  # the CPU whose registers and memory are meant
        self._stepped = 0  # the CPU that steps backwards
        self._packets, self._queries = self._kinds(), self._table()

    def stopped(self, stop: Stop) -> bytes:
        """The guest has stopped. Returns the reply that says so."""
        self._stop, self._selected, self._stepped = stop, stop.cpu, stop.cpu
        return reply(stop, self._abilities)

    def handle(self, data: bytes) -> Outcome:
        """The outcome of a packet."""
        text = data.decode("latin-1")
        try:
            known = self._packets.get(text[:1])
            return b"" if known is None else known(text[:1], text[1:], data)
        except UsageError as error:
            return f"E.{error}".encode("ascii", "replace")
        except (ValueError, IndexError):
            return _ERROR

    def _kinds(self) -> dict[str, Callable[[str, str, bytes], Outcome]]:
        """By the first letter: what is called with that, with the rest, and with all of the packet."""
        return {
            "?": lambda _kind, _rest, _data: reply(self._stop, self._abilities),
            "D": lambda _kind, _rest, _data: Leaving.DETACHED,
            "k": lambda _kind, _rest, _data: Leaving.KILLED,
            "b": lambda _kind, rest, _data: self._back(rest),
            **dict.fromkeys("gGpP", lambda kind, rest, _data: self._register(kind, rest)),
            **dict.fromkeys("mMX", self._memory),
            **dict.fromkeys("Zz", lambda kind, rest, _data: self._point(kind, rest)),
            **dict.fromkeys("HT", lambda kind, rest, _data: self._thread(kind, rest)),
            **dict.fromkeys("cCsS", lambda kind, rest, _data: self._resume(kind, rest)),
            **dict.fromkeys("vqQ", lambda kind, rest, _data: self._query(kind, rest)),
        }

    # -- registers and memory -----------------------------------------------------------------------------------------

    def _show(self) -> None:
        if self._all.system.current.number != self._selected:
            self._all.system.show(self._selected)

    def _register(self, kind: str, rest: str) -> bytes:
        self._show()
        registers = self._all.registers
        match kind:
            case "g":
                return registers.general().hex().encode()
            case "G":
                registers.set_general(bytes.fromhex(rest))
                self._all.backwards.changed()
                return _OK
            case "p":
                content = registers.get(_number(rest))
                return _ERROR if content is None else content.hex().encode()
            case _:
                number, _, value = rest.partition("=")
                registers.set(_number(number), bytes.fromhex(value))
                self._all.backwards.changed()
                return _OK

    def _memory(self, kind: str, rest: str, data: bytes) -> bytes:
        head, _, content = rest.partition(":")
        address, size = (_number(part) for part in head.split(","))
        self._show()
        if kind == "m":
            found = self._all.memory.read(address, min(size, _MOST))
            return found.hex().encode() if found or not size else _ERROR
        written = bytes.fromhex(content) if kind == "M" else data[len(head) + 2 :]
        if len(written) != size:
            return _ERROR
        self._all.memory.write(address, written)
        self._all.backwards.changed()
        return _OK

    def _point(self, kind: str, rest: str) -> bytes:
        which, address, size = rest.split(";")[0].split(",")
        number = int(which)
        if number not in BREAKPOINTS and number not in WATCHPOINTS:
            return b""
        self._show()
        act = self._all.points.insert if kind == "Z" else self._all.points.remove
        act(number, _number(address), _number(size))
        return _OK

    # -- threads ------------------------------------------------------------------------------------------------------

    def _thread(self, kind: str, rest: str) -> bytes:
        operation, text = (rest[:1], rest[1:]) if kind == "H" else ("", rest)
        thread = int(text, 16)
        cpus = self._all.system.cpus
        if not (-1 if kind == "H" else 1) <= thread <= len(cpus):
            return _ERROR
        if operation == "g":
            self._selected = thread - 1 if thread > 0 else self._stop.cpu
        if operation == "c":
            self._stepped = thread - 1 if thread > 0 else self._stop.cpu
        return _OK

    def _resume(self, kind: str, rest: str) -> Outcome:
        address = rest.partition(";")[2] if kind in "CS" else rest
        if address:
            self._show()
            registers = self._all.registers
            pc = next(number for number, one in enumerate(registers.table.all) if one.name == registers.table.pc)
            registers.set(pc, _number(address).to_bytes(8, "little"))
            self._all.backwards.changed()
        return Resumption(self._selected if kind in "sS" else None)

    def _back(self, rest: str) -> Outcome:
        if rest not in _WAYS:
            return b""
        self._all.backwards.check()
        return Back(_WAYS[rest], self._stepped)

    def _vcont(self, actions: str) -> Outcome:
        return resumption(actions, self._stop.cpu, len(self._all.system.cpus)) or _ERROR

    def _extra(self, thread: str) -> bytes:
        cpu = self._all.system.cpus[_thread_number(thread)]
        state = "is off" if not cpu.is_on else "waits for an interrupt" if cpu.is_waiting else "runs"
        return f"CPU {cpu.number} {state}".encode().hex().encode()

    # -- queries ------------------------------------------------------------------------------------------------------

    def _table(self) -> dict[str, Callable[[str], Outcome]]:
        """What begins with v, q and Q, by what comes before the first of `:`, `,` and `;`."""
        threads = "m" + ",".join(f"{number + 1:x}" for number in range(len(self._all.system.cpus)))
        return {
            "vCont?": lambda _rest: b"vCont;c;C;s;S",
            "vCont": self._vcont,
            "vKill": lambda _rest: Leaving.KILLED,
            "qSupported": self._supported,
            "QStartNoAckMode": lambda _rest: self._quietly(),
            "qXfer": self._transfer,
            "qRcmd": self._command,
            "qAttached": lambda _rest: b"1",
            "qC": lambda _rest: f"QC{self._stop.cpu + 1:x}".encode(),
            "qfThreadInfo": lambda _rest: threads.encode(),
            "qsThreadInfo": lambda _rest: b"l",
            "qThreadExtraInfo": self._extra,
            "qqemu.PhyMemMode": lambda _rest: b"1" if self._all.memory.is_physical else b"0",
            "Qqemu.PhyMemMode": self._physical,
            "qSymbol": lambda _rest: _OK,
        }

    def _query(self, kind: str, rest: str) -> Outcome:
        name, rest = re.fullmatch(r"([^:,;]*)[:,;]?(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
        known = self._queries.get(kind + name)
        return b"" if known is None else known(rest)

    def _supported(self, rest: str) -> bytes:
        words = rest.split(";")
        self._abilities = Abilities(has_swbreak="swbreak+" in words, has_hwbreak="hwbreak+" in words)
        can_go_back = self._all.backwards.history.why_not() is None
        return f"{_SUPPORTED}{_BACK if can_go_back else ''}".encode()

    def _quietly(self) -> bytes:
        self._stop_acknowledging()
        return _OK

    def _transfer(self, rest: str) -> bytes:
        if not rest.startswith("features:read:"):
            return b""
        name, _, place = rest[len("features:read:") :].rpartition(":")
        if name != "target.xml":
            return b"E00"
        start, size = (_number(part) for part in place.split(","))
        content = self._all.registers.table.description
        part = content[start : start + min(size, _PACKET - 8)]
        return (b"m" if start + len(part) < len(content) else b"l") + part

    def _command(self, rest: str) -> bytes:
        self._show()
        text = self._all.monitor.run(bytes.fromhex(rest).decode("utf-8", "replace"))
        return text.encode().hex().encode() or _OK

    def _physical(self, rest: str) -> bytes:
        if rest not in ("0", "1"):
            return _ERROR
        self._all.memory.be_physical(is_wanted=rest == "1")
        return _OK


def _number(text: str) -> int:
    """A hexadecimal number of 64 bits. Raises ValueError."""
    value = int(text, 16)
    if not 0 <= value <= _WORD:
        raise ValueError(text)
    return value


def _thread_number(text: str) -> int:
    """The CPU of a thread. Raises ValueError, IndexError."""
    number = _number(text)
    if not number:
        raise ValueError(text)
    return number - 1
