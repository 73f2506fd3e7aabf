"""A user's Qiling object -> what it knows of its guest: machine, image, system, threads, free memory.

Qiling has no types: all that reads its layers, other than the engine itself, is here.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import ARCHES
from kinst.targets.errors import MachineError, PlacementError, UsageError

_LABEL: Final = "[kinst]"  # of our memory, in Qiling's map and in the guest's /proc/self/maps


class AttachedGuest:
    """The guest of a Qiling object."""

    def __init__(self, ql: Any) -> None:
        """Raises MachineError if its machine is not supported, UsageError if it is no Qiling object."""
        self._ql = ql
        self.arch = _arch(ql)
        self.has_system: bool = hasattr(ql.os, "pid")  # an OS layer, under which a program has a flat address space
        self.is_threaded: bool = bool(ql.multithread)

    @property
    def path(self) -> Path | None:
        """The file that Qiling loaded; None: it was given bytes."""
        return Path(self._ql.path) if self._ql.path else None

    def starts(self, path: Path) -> Iterator[int]:
        """Where an image may have been loaded: candidates for the run-time address of its first page."""
        loader = self._ql.loader
        for image in getattr(loader, "images", ()):
            if Path(image.path) == path.absolute():
                yield image.base
        yield loader.load_address

    # -- memory -------------------------------------------------------------------------------------------------------

    def is_device(self, address: int) -> bool:
        """Whether a device is there, which a read would have effects on."""
        memory = self._ql.mem
        return bool(memory.mmio_cbs) and any(
            is_device and start <= address < end for start, end, _, _, is_device in memory.map_info
        )

    def is_free(self, address: int, size: int) -> bool:
        """Whether nothing is mapped in [address, address + size)."""
        free: bool = self._ql.mem.is_available(address, size)
        return free

    def free_place(self, size: int, low: int, high: int, alignment: int) -> int:
        """The address of `size` free bytes between `low` and `high`. Raises PlacementError."""
        try:
            found: int = self._ql.mem.find_free_space(size, low, high, alignment)
        except Exception as error:
            raise PlacementError(
                f"no {size:#x} bytes are free between {low:#x} and {high:#x} for trampolines"
            ) from error
        return found

    def map(self, address: int, content: bytes) -> None:
        """Map memory that can be executed, with this content."""
        self._ql.mem.map(address, -(-len(content) // 4096) * 4096, info=_LABEL)
        self._ql.mem.write(address, content)

    def unmap(self, address: int, size: int) -> None:
        """Unmap it."""
        self._ql.mem.unmap(address, size)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def around_snapshots(self, hide: Callable[[], None], show: Callable[[], None]) -> Callable[[], None]:
        """Call `hide` before Qiling saves or restores the guest's memory, and `show` afterwards. Returns a function
        that undoes this. Without it, a snapshot would contain breakpoints that a later restore puts where no site is
        armed."""
        memory = self._ql.mem
        save, restore = memory.save, memory.restore

        def saved() -> Any:
            hide()
            try:
                return save()
            finally:
                show()

        def restored(state: Any) -> None:
            hide()
            try:
                restore(state)
            finally:
                show()

        memory.save, memory.restore = saved, restored

        def undo() -> None:
            del memory.save, memory.restore  # from the object: the methods of its class are there again

        return undo

    # -- what the system knows ----------------------------------------------------------------------------------------

    def thread(self) -> int:
        """The identifier of the thread that runs; 0 where Qiling has no threads."""
        manager = getattr(self._ql.os, "thread_management", None) if self.is_threaded else None
        current = None if manager is None else manager.cur_thread
        return 0 if current is None else int(current.id)

    def integer(self, name: str) -> int:
        """pid, tid, uid and so on; 0 where Qiling's system does not know it."""
        if name == "tid":
            return self.thread() or self.integer("pid")
        return int(getattr(self._ql.os, name, 0)) if name in ("pid", "uid", "gid", "euid", "egid") else 0

    def string(self, name: str) -> str:
        """execname, execargs, cwd, root; empty where it is not known."""
        match name:
            case "execname":
                return "" if self.path is None else self.path.name
            case "execargs":
                return " ".join(map(str, self._ql.argv)).strip()
            case "cwd":
                return str(self._ql.os.path.cwd) if self.has_system else ""
            case "root":
                return "/" if self.has_system else ""
            case _:
                return ""

    @property
    def exit_code(self) -> int:
        """The program's exit status."""
        return int(self._ql.os.exit_code)

    def stop(self) -> None:
        """End the run."""
        self._ql.stop()


def _arch(ql: Any) -> ArchFacts:
    kind = getattr(getattr(getattr(ql, "arch", None), "type", None), "name", None)
    if kind is None:
        raise UsageError(f"{type(ql).__name__}: not a Qiling object")
    for arch in ARCHES:
        if arch.engine.qiling == kind and ql.arch.endian.name == "EL":
            return arch
    names = ", ".join(arch.name for arch in ARCHES)
    order = "" if ql.arch.endian.name == "EL" else ", big-endian"
    raise MachineError(f"Qiling emulates {kind}{order} here: there is no machine for it; there are {names}")
