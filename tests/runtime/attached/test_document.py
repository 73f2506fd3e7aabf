"""The example of docs/guide/qiling.md does what it says, and its machines of ours are Qiling objects."""

import re
import shutil
from pathlib import Path

import pytest

from kinst.runtime import Machine
from kinst.runtime.api import open_image
from kinst.targets.arch.registry import NAMES
from tests.runtime.attached.programs import address_of, static

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "guide" / "qiling.md"


@pytest.mark.parametrize("machine", NAMES)
def test_the_example_runs(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder that has the program it names."""
    found = re.search(r"^<!-- attach -->\n```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert found is not None
    (tmp_path / "rootfs" / "bin").mkdir(parents=True)
    shutil.copy(static(machine), tmp_path / "rootfs" / "bin" / "program")
    monkeypatch.chdir(tmp_path)

    exec(compile(found[1], PAGE.name, "exec"), {})

    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith(repr(["ab", "\n", "cde", "\n"]))
    assert "'depth': 5" in told
    assert told.endswith(f"[({ord('a') + ord('b')},), ({sum(b'cde')},)]")


def test_our_machines_are_qiling_objects() -> None:
    """By the door that users have."""
    path = ROOT / "samples" / "kernel-riscv64.elf"
    with open_image(path) as image, image.trace(machine=Machine(clock="icount")) as trace:
        ql, seen = trace.guest.ql, []
        address = address_of(trace.guest.loaded.image, "rpc_call")
        ql.hook_address(lambda ql: seen.append(ql.arch.regs.arch_pc), address)
        trace.run()
        assert bytes(ql.mem.read(address, 4)) == trace.guest.loaded.image.read(address, 4)

    assert set(seen) == {address}
