"""Unicorn's library, with prototypes of our own: the binding's check types at every call."""

import ctypes
from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

_Handle: Final = ctypes.c_void_p


def loaded_library() -> ctypes.CDLL:
    """The library that the binding has loaded."""
    library = ctypes.CDLL(uclib._name)
    library.uc_emu_start.argtypes = (_Handle, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t)
    library.uc_strerror.restype = ctypes.c_char_p
    library.uc_context_size.restype = ctypes.c_size_t
    return library


def emulator_version() -> str:
    """Its name and release: what a CPU's state looks like depends on it."""
    return f"Unicorn {unicorn.__version__}"
