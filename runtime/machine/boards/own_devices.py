"""A device of the user's own -> its class: of a Python file that a board file names, or of an installed package.

A board file is named on the command line, and so is what it may run: boards that ship have no file, and name no code.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from kinst.runtime.machine.device import Device
from kinst.targets.errors import MachineError
from kinst.targets.machines.kinds import OWN_DEVICES

_NEEDED: Final = ("read", "write")


def own_device(kind: str, board: Path | None) -> Callable[[Any], Device] | None:
    """What makes the devices of a kind that is not ours: `FILE.py:CLASS`, a file beside the board file, or the name of
    an entry point of the group `kinst.devices`. None: there is no such kind.

    Raises:
        MachineError: the file or the package fails, or has no such class.
    """
    path, _, name = kind.rpartition(":")
    if path and board is not None:
        return _checked(_of_file(board.parent / path, name), kind)
    found = entry_points(group=OWN_DEVICES, name=kind)
    if not found:
        return None
    try:
        return _checked(next(iter(found)).load(), kind)
    except Exception as error:
        raise MachineError(f"{kind}: its package fails: {type(error).__name__}: {error}") from error


def _of_file(path: Path, name: str) -> Any:
    spec = spec_from_file_location(f"kinst_board_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise MachineError(f"{path}: is not a Python file: its name ends in .py")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise MachineError(f"{path}: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise MachineError(f"{path}: has no class {name}")
    return getattr(module, name)


def _checked(made: Any, kind: str) -> Callable[[Any], Device]:
    for name in _NEEDED:
        if not callable(getattr(made, name, None)):
            raise MachineError(
                f"{kind}: has no method {name}(): a device has read(offset, size) and write(offset, size, value)"
            )
    return made  # type: ignore[no-any-return]  # a class of the user's


class Guarded:
    """A user's device: what it does wrong ends the run with a line that names it, and what it gives fits the access."""

    def __init__(self, device: Device, size: int, name: str) -> None:
        """`size` is that of the board file."""
        self.size = size
        self._device, self._name = device, name

    def read(self, offset: int, size: int) -> int:
        """What the device gives. Raises MachineError for whatever it raises."""
        try:
            return int(self._device.read(offset, size)) & (1 << 8 * size) - 1
        except Exception as error:
            raise self._failed("read", error) from error

    def write(self, offset: int, size: int, value: int) -> None:
        """Pass a write on. Raises MachineError for whatever it raises."""
        try:
            self._device.write(offset, size, value)
        except Exception as error:
            raise self._failed("write", error) from error

    def state(self) -> Any:
        """What the device says of itself for a snapshot: numbers, texts, bytes and containers of these. Raises
        MachineError: it has no methods for it."""
        if not (callable(getattr(self._device, "state", None)) and callable(getattr(self._device, "restore", None))):
            raise MachineError(
                f"devices.{self._name}: has no snapshots: a device of your own needs methods state() and restore(state)"
            )
        try:
            return self._device.state()  # type: ignore[attr-defined]
        except Exception as error:
            raise self._failed("state", error) from error

    def restore(self, state: Any) -> None:
        """Return the device to what it said. Raises MachineError for whatever it raises."""
        try:
            self._device.restore(state)  # type: ignore[attr-defined]
        except Exception as error:
            raise self._failed("restore", error) from error

    def _failed(self, what: str, error: Exception) -> MachineError:
        return MachineError(f"devices.{self._name}: {what}() failed: {type(error).__name__}: {error}")
