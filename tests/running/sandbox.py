"""A root folder, files that stand in for some of its own, and a command -> a process in there, stopped at its start.

The process has a namespace of mounts, in which the root is read-only but for /work and /tmp, and a file that stands in
for another has its name: whoever loads it, finds it, or asks what runs, sees no difference.
Without the rights of root it has a namespace of users as well, in which it is root.
"""

import ctypes
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WORK: Final = "/work"  # where the command is run
_EMULATOR: Final = "/emulator/qemu"
EMULATORS: Final = {"arm64": "qemu-aarch64-static", "riscv64": "qemu-riscv64-static"}
# The emulator's default but for how pointers are signed: the architecture's own cipher takes most of the time.
_PROCESSORS: Final = {"arm64": {"QEMU_CPU": "max,pauth-impdef=on"}}
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PTRACE_TRACEME: Final = 0
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 0x20, 0x1000, 0x4000, 0x40000
_ADDR_NO_RANDOMIZE: Final = 0x0040000
_ENVIRONMENT: Final = {"PATH": "/usr/bin", "HOME": WORK, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


class SandboxError(Exception):
    """This machine does not let us have one."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`work` is the folder that is /work in there. `instead`: path in the root -> the file that stands in for it.
    `machine` is the one that its programs are for. With `is_random`, addresses are others in each run, as usual."""

    root: Path
    work: Path
    machine: str
    instead: Mapping[str, Path]
    is_random: bool = False

    def start(self, command: str, environment: Mapping[str, str], stdin: Path | None) -> int:
        """The process, which stops as ptrace's child when its program begins. Its output are the files `stdout` and
        `stderr` beside the folder."""
        name, *words = shlex.split(command)
        variables = _ENVIRONMENT | _PROCESSORS.get(self.machine, {}) | dict(environment)
        emulator = EMULATORS.get(self.machine)
        words = [name if "/" in name else f"/usr/bin/{name}", *words]
        if emulator is not None:
            words = [_EMULATOR, *words]
        mounts = [*self._mounts(emulator)]
        child = os.fork()
        if child:
            return child
        try:
            self._become(mounts, stdin)
            os.execve(words[0], words, variables)
        except BaseException as problem:
            os.write(2, f"sandbox: {words[0]}: {problem}\n".encode())
        finally:
            os._exit(127)

    def _mounts(self, emulator: str | None) -> Iterable[tuple[str, str]]:
        temporary = self.work.with_name(f"{self.work.name}.tmp")
        temporary.mkdir(exist_ok=True)
        yield from ((str(self.work), WORK), (str(temporary), "/tmp"), ("/proc", "/proc"), ("/dev", "/dev"))
        yield from ((str(path), where) for where, path in self.instead.items())
        if emulator is not None:
            place, found = self.root / _EMULATOR[1:], shutil.which(emulator)
            place.touch()
            yield found or emulator, _EMULATOR

    def _become(self, mounts: Iterable[tuple[str, str]], stdin: Path | None) -> None:
        for number, path in enumerate((stdin or Path("/dev/null"), self.output("stdout"), self.output("stderr"))):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY, 0o644), number)
        _private_mounts()
        root = str(self.root)
        _mount(root, root, _MS_BIND | _MS_REC)
        for source, where in mounts:
            _mount(source, os.path.realpath(f"{root}{where}"), _MS_BIND | _MS_REC)
        _mount(None, root, _MS_BIND | _MS_REMOUNT | _MS_RDONLY)
        os.chroot(root)
        os.chdir(WORK)
        if not self.is_random:
            _checked("personality", _LIBC.personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE)))
        _checked("ptrace", _LIBC.ptrace(_PTRACE_TRACEME, 0, None, None))

    def output(self, name: str) -> Path:
        """Where stdout or stderr goes."""
        return self.work.with_name(f"{self.work.name}.{name}")


def _private_mounts() -> None:
    if os.geteuid():
        user, group = os.geteuid(), os.getegid()
        _checked("unshare", _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNS))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    else:
        _checked("unshare", _LIBC.unshare(_CLONE_NEWNS))
    _mount(None, "/", _MS_REC | _MS_PRIVATE)


def _mount(source: str | None, target: str, flags: int) -> None:
    encoded = None if source is None else source.encode()
    _checked(f"mount {target}", _LIBC.mount(encoded, target.encode(), None, ctypes.c_ulong(flags), None))


def _checked(what: str, result: int) -> None:
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def missing(machine: str) -> str:
    """Why there can be no sandbox for programs of a machine here; empty if there can."""
    emulator = EMULATORS.get(machine)
    if emulator is not None and shutil.which(emulator) is None:
        return f"{emulator} is not installed"
    options = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    tried = subprocess.run(["unshare", *options, "true"], capture_output=True)
    return "" if tried.returncode == 0 else "this system lets nobody have mounts of their own"
