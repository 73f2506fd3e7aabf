"""Addresses -> the option of QEMU that counts how often the instructions there are executed, and the counts."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_SOURCE = Path(__file__).with_name("count_calls.c")


@dataclass(frozen=True, slots=True)
class Plugin:
    """The plugin, built for this host. `option`: the value of QEMU's -plugin."""

    addresses: NDArray[np.uint64]  # ascending
    option: str
    _to: Path

    def counts(self) -> NDArray[np.uint64]:
        """By address, when QEMU has ended."""
        found = np.fromfile(self._to, np.uint64)
        assert len(found) == len(self.addresses), f"{self._to}: QEMU did not end by itself"
        return found


def counting_plugin(program: str, addresses: NDArray[np.uint64], folder: Path) -> Plugin | None:
    """A plugin that counts what is executed at some addresses; None if QEMU or the host has not what it needs.

    Args:
        program: the QEMU that will load it.
        addresses: in any order.
        folder: for its files, which have to stay until QEMU has ended.
    """
    library, at, to = (folder / f"count_calls.{kind}" for kind in ("so", "at", "to"))
    if shutil.which("gcc") is None:
        return None
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
    found = Plugin(np.unique(addresses.astype(np.uint64)), f"{library},at={at},to={to}", to)
    found.addresses.tofile(at)
    tried = subprocess.run(
        [program, "-M", "none", "-display", "none", "-monitor", "stdio", "-plugin", found.option],
        input=b"quit\n", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return found if tried.returncode == 0 else None
