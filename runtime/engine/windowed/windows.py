"""Windows of memory that Python answers: the callbacks for Unicorn, and accesses of eight bytes in one call.

Unicorn passes no more than four bytes to a window at once. QEMU, of which it is a fork, has a number for that in the
description of each region of memory, which Unicorn leaves at its default. Where it is was read from Unicorn's sources:

    MemoryRegion          16 ops     24 opaque      48 size (128 bits)     64 address
    mmio_cbs (opaque)      0 read    16 write       32 ops
    MemoryRegionOps       32 endianness            64 impl.min_access_size        68 impl.max_access_size
"""

import ctypes
import os
from collections.abc import Callable
from typing import Any, Final

from kinst.runtime.engine.live_pc import memory_of_engine
from kinst.runtime.engine.reports import Window

_Handle = ctypes.c_void_p
_READ = ctypes.CFUNCTYPE(ctypes.c_uint64, _Handle, ctypes.c_uint64, ctypes.c_uint, _Handle)
_WRITE = ctypes.CFUNCTYPE(None, _Handle, ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint64, _Handle)
_ENGINE: Final = 4096  # bytes of the structures that are looked through for pointers to regions
_OPS, _OPAQUE, _SIZE, _ADDRESS = 16, 24, 48, 64
_REGION, _OWN, _OPS_SIZE = 72, 32, 80
_ENDIANNESS, _LARGEST = 32, 68
_HIGHEST: Final = 1 << 56  # host addresses are below


def callbacks(window: Window, guarded: Callable[..., Any]) -> tuple[Any, Any]:
    """The two functions that Unicorn calls. `guarded` calls a function, and has what to return if it raises."""

    def read(_uc: int, offset: int, width: int, _data: int) -> int:
        value: int = guarded(0, window.read, offset, width)
        return value & (1 << 8 * width) - 1

    def write(_uc: int, offset: int, width: int, value: int, _data: int) -> None:
        guarded(None, window.write, offset, width, value & (1 << 8 * width) - 1)

    return _READ(read), _WRITE(write)


def widen(engine: int, address: int, size: int, functions: tuple[int, int]) -> bool:
    """Let accesses of eight bytes to a window come in one call. Whether its description was found; else they come in
    two calls, the lower half first.

    Args:
        engine: the address of uc_struct.
        address: the window's.
        size: its size in bytes.
        functions: the addresses of those that Unicorn calls for it.
    """
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return False
    try:
        for place in sorted({word for _, content in memory_of_engine(engine, _ENGINE) for word in _words(content)}):
            found = _ops(memory, place, address, size, functions)
            if found:
                ctypes.c_uint32.from_address(found + _LARGEST).value = 8
                return True
    finally:
        os.close(memory)
    return False


def _ops(memory: int, place: int, address: int, size: int, functions: tuple[int, int]) -> int:
    """The address of the region's MemoryRegionOps, if a region of the window is at this place and all that is known of
    it is as expected; else 0."""
    region = _words(_read(memory, place, _REGION)) if 0 < place < _HIGHEST and not place % 8 else []
    if len(region) * 8 != _REGION or (region[_SIZE // 8], region[_SIZE // 8 + 1]) != (size, 0):
        return 0
    ops, opaque = region[_OPS // 8], region[_OPAQUE // 8]
    if region[_ADDRESS // 8] != address or ops != opaque + _OWN or ops >= _HIGHEST:
        return 0
    own, numbers = _words(_read(memory, opaque, _OWN)), _read(memory, ops, _OPS_SIZE)
    is_as_expected = len(numbers) == _OPS_SIZE and not any(numbers[_ENDIANNESS + 4 :]) and not any(numbers[16:32])
    return ops if is_as_expected and (own[0], own[2]) == functions else 0


def _words(content: bytes) -> list[int]:
    return memoryview(content[: len(content) & -8]).cast("Q").tolist()


def _read(memory: int, address: int, size: int) -> bytes:
    try:
        return os.pread(memory, size, address)
    except OSError:  # nothing is mapped there
        return b""
