"""A mapped file that becomes shorter while it is read -> a one-line error, in place of a signal that ends the process.

The kernel sends SIGBUS to a process that touches a mapped page after the end of the file. Here zeros are mapped over
what is gone, so that the reader returns to Python, and finds an exception there. Reading files instead of mapping them
would cost a vmlinux of 600 MB its size in memory, and each command half a second.
"""

import ctypes
import mmap
import signal
import threading
import weakref
from pathlib import Path
from types import FrameType
from typing import Final

from kinst.targets.errors import KinstError
from kinst.targets.values import dataclass

_FAULT_ADDRESS: Final = 16  # in a siginfo_t of Linux, 64 bits
_SIGINFO: Final = 4  # SA_SIGINFO
_NUMBER: Final = int(signal.SIGBUS)
_FIXED_ZEROS: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
_Handler: Final = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class ShrunkFileError(KinstError):
    """A file became shorter while it was read. It is no ImageError, to which some readers add the name of a file."""


class _Action(ctypes.Structure):
    """struct sigaction of the C library."""

    _fields_ = (
        ("handler", _Handler),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A file as it is mapped."""

    path: Path
    address: int
    size: int


class Mappings:
    """The mapped files, for a handler that gets nothing but an address.

    The handler is Python code in the middle of whatever the thread was doing: it cannot raise, since nobody would
    catch. So it sends the signal once more: that comes when the handler has returned, and goes to Python's own signal
    handling, which calls `_raise` in the main thread as soon as that is back in Python.
    """

    def __init__(self) -> None:
        """Nothing is mapped yet, and no handler is there."""
        self._known: dict[int, _Mapped] = {}
        self._ours = _Action(_Handler(self._on_fault), flags=_SIGINFO)
        self._pythons = _Action(ctypes.cast(ctypes.pythonapi.PyErr_SetInterruptEx, _Handler))
        self._before: _Action | None = None
        self._shrunk: Path | None = None
        self._libc = ctypes.CDLL(None)
        self._libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)

    def note(self, path: Path, file: mmap.mmap, address: int) -> None:
        """Note that a file is mapped at an address, for as long as `file` is. The handler is installed with the first
        file that the main thread maps."""
        if self._before is None and threading.current_thread() is threading.main_thread():
            self._before = _Action()
            self._libc.sigaction(_NUMBER, None, ctypes.byref(self._before))
            signal.signal(_NUMBER, self._raise)
            self._handle_by(self._ours)
        self._known[address] = _Mapped(path, address, len(file))
        weakref.finalize(file, self._known.pop, address, None)

    def _handle_by(self, action: _Action) -> None:
        self._libc.sigaction(_NUMBER, ctypes.byref(action), None)

    def _on_fault(self, _number: int, information: int, _context: int) -> None:
        address = ctypes.c_uint64.from_address(information + _FAULT_ADDRESS).value
        found = next((one for one in list(self._known.values()) if 0 <= address - one.address < one.size), None)
        if found is None:  # none of ours: it comes again, to the handler that was there before
            assert self._before is not None, "it was there before this handler"
            self._handle_by(self._before)
            return
        start = address & -mmap.PAGESIZE
        end = found.address + -(-found.size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._libc.mmap(start, end - start, mmap.PROT_READ, _FIXED_ZEROS, -1, 0)
        self._shrunk = found.path
        self._handle_by(self._pythons)
        getattr(self._libc, "raise")(_NUMBER)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        self._handle_by(self._ours)
        raise ShrunkFileError(f"{self._shrunk}: became shorter while it was read")


MAPPINGS: Final = Mappings()
