"""What every program knows without declaring it: variables, constants, and which words are functions (`words`)."""

from collections.abc import Sequence
from typing import Final

from kinst.runtime.dlang.syntax.words import ACTIONS, AGGREGATING, SUBROUTINES
from kinst.runtime.dlang.types.types import (
    INT,
    INT64,
    STRING,
    UINT,
    UINT32,
    UINT64,
    UINTPTR,
    DType,
)
from kinst.targets.c_types import Pointer, Typedef, Void

_PID: Final = Typedef("pid_t", INT)
_ID: Final = Typedef("id_t", INT)
_UID: Final = Typedef("uid_t", UINT)
_GID: Final = Typedef("gid_t", UINT)
_UINT_T: Final = Typedef("uint_t", UINT)

# docs/facts/dlang.md, Variables. The values of those about processes and threads come from the guest's profile: a bare
# machine has none. The type that `curthread` points to is known only from the guest's debug information (THREADS).
VARIABLES: Final[dict[str, DType]] = {
    **{f"arg{number}": INT64 for number in range(10)},
    "caller": UINTPTR,
    "cpu": INT,
    "curthread": Pointer(Void()),
    "cwd": STRING,
    "epid": _UINT_T,
    "errno": INT,
    "execargs": STRING,
    "execname": STRING,
    "gid": _GID,
    "id": _UINT_T,
    "ipl": _UINT_T,
    "jailname": STRING,
    "jid": INT,
    "pid": _PID,
    "ppid": _PID,
    "probefunc": STRING,
    "probemod": STRING,
    "probename": STRING,
    "probeprov": STRING,
    "root": STRING,
    "stackdepth": UINT32,
    "tid": _ID,
    "timestamp": UINT64,
    "$target": _PID,
    "ucaller": UINT64,
    "uid": _UID,
    "ustackdepth": UINT32,
    "vtimestamp": UINT64,
    "walltimestamp": INT64,
    "zonename": STRING,
}

# What Linux, FreeBSD and illumos call a thread.
THREADS: Final = ("struct task_struct", "struct thread", "kthread_t")

# Arrays that are indexed by an integer.
ARRAYS: Final = frozenset({"args", "regs", "uregs"})

# Inlines of the libraries that come with DTrace: unistd.d, signal.d, errno.d (with FreeBSD's numbers).
_FAULTS: Final = (
    "UNKNOWN", "BADADDR", "BADALIGN", "ILLOP", "DIVZERO", "NOSCRATCH", "KPRIV", "UPRIV", "TUPOFLOW", "BADSTACK",
)  # fmt: skip
_SIGNALS: Final = (
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "EMT", "FPE", "KILL", "BUS", "SEGV", "SYS", "PIPE", "ALRM", "TERM",
    "URG", "STOP", "TSTP", "CONT", "CHLD", "TTIN", "TTOU", "IO", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "INFO",
    "USR1", "USR2",
)  # fmt: skip
_ERRORS: Final = (
    "PERM", "NOENT", "SRCH", "INTR", "IO", "NXIO", "2BIG", "NOEXEC", "BADF", "CHILD", "DEADLK", "NOMEM", "ACCES",
    "FAULT", "NOTBLK", "BUSY", "EXIST", "XDEV", "NODEV", "NOTDIR", "ISDIR", "INVAL", "NFILE", "MFILE", "NOTTY",
    "TXTBSY", "FBIG", "NOSPC", "SPIPE", "ROFS", "MLINK", "PIPE", "DOM", "RANGE", "AGAIN",
)  # fmt: skip
_ENDS: Final = ("EXITED", "KILLED", "DUMPED", "TRAPPED", "STOPPED", "CONTINUED")


def constants_of(errors: Sequence[str], signals: Sequence[str]) -> dict[str, int]:
    """NULL, SIGINT and the like for an operating system with these errors and signals: their names without E and SIG,
    in order of their numbers from 1, with an empty name for a number that is not used."""
    kinds = (("E", 1, errors), ("SIG", 1, signals), ("CLD_", 1, _ENDS), ("DTRACEFLT_", 0, _FAULTS))
    numbers = {f"{kind}{name}": at for kind, first, names in kinds for at, name in enumerate(names, first) if name}
    return {"NULL": 0, "DTRACEFLT_LIBRARY": 1000, **numbers}


# For programs without an image, and for an image whose operating system is not known.
FREEBSD: Final = constants_of(_ERRORS, _SIGNALS)

FUNCTIONS: Final = AGGREGATING | ACTIONS | SUBROUTINES


def is_predefined(name: str) -> bool:
    """Whether a global variable of this name would be a redeclaration."""
    return name in VARIABLES or name in ARRAYS or name in FUNCTIONS
