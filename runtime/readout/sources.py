"""The value of --read -> the source of memory."""

import math
import re
from pathlib import Path
from typing import Final

from kinst.runtime.readout.files import CoreDump, raw_dump
from kinst.runtime.readout.gdb import GdbStub
from kinst.runtime.readout.memory import Source
from kinst.runtime.readout.packets import Patience
from kinst.targets.elf.core import read_core
from kinst.targets.elf.file import map_file
from kinst.targets.errors import ImageError, UsageError

_MAGIC: Final = b"\x7fELF"
_FORMS: Final = "a core, FILE@ADDRESS for bytes of memory, gdb:HOST:PORT, or qmp:SOCKET"
_GDB: Final = re.compile(r"gdb:(?P<host>\[[^\[\]]+\]|[^:]*):(?P<port>[0-9]{1,5})")
_RAW: Final = re.compile(r"(?P<file>.+)@(?P<address>0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19})", re.DOTALL)
_PORTS: Final = range(1, 1 << 16)


def source_of(text: str, end: float = math.inf) -> Source:
    """The source that `text` names. A stub is not connected yet. `end`, of time.monotonic(): a stub is not awaited any
    more.

    Raises:
        UsageError: it names none, or a file that cannot be read.
    """
    try:
        return _stub(text, end) if text.startswith("gdb:") else _file(text)
    except ImageError as error:
        raise UsageError(f"--read {text}: {error}") from None


def _stub(text: str, end: float) -> Source:
    found = _GDB.fullmatch(text)
    if found is None or int(found["port"]) not in _PORTS:
        raise UsageError(f"--read {text}: gdb:HOST:PORT, for example gdb:localhost:1234")
    return GdbStub(found["host"].strip("[]") or "localhost", int(found["port"]), Patience(end=end))


def _file(text: str) -> Source:
    raw = _RAW.fullmatch(text)
    if raw is not None and not Path(text).exists():
        address = raw["address"]
        base = 16 if address[:2] in ("0x", "0X") else 10
        return raw_dump(raw["file"], Path(raw["file"]), int(address, base))
    data = map_file(Path(text))
    if data[: len(_MAGIC)].tobytes() == _MAGIC:
        return CoreDump(Path(text), read_core(data))
    if data[:8].tobytes() == b"KDUMP   ":
        raise ImageError("a compressed kdump file: dump memory as an ELF core")
    raise ImageError(f"not an ELF core: --read takes {_FORMS}")
