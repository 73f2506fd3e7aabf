"""What a start of Linux from a snapshot of its shell costs, beside a boot to the shell and beside reading the image."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.images import at_hand, real_image
from tests.system.test_shell import shell

_FIRST_LINE = ("-q", "-n", 'BEGIN { printf("begun"); exit(0); }')


def _user_seconds(command: Sequence[str]) -> float:
    """User CPU of a command that must succeed."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise AssertionError(f"{command}: status {child.returncode}")
    return usage.ru_utime


def main() -> None:
    """Print a row, if the kernel is in the cache. Seconds of user CPU are compared, in the same run."""
    print(f"\n{'snapshots, Linux amd64, 512 MB':40}{'s of CPU':>10}{'of a boot':>12}")
    if not at_hand("linux-amd64"):
        print("linux-amd64 is not in the cache: python -m tests.images linux-amd64")
        return
    with tempfile.TemporaryDirectory() as name:
        folder, image = Path(name), str(real_image("linux-amd64"))
        file, memory = str(folder / "shell.snap"), ("--memory", "512M")
        boot = ("--initrd", str(shell("amd64", folder)), "--until", "# $", "--snapshot-at", f"END={file}")
        console = ("--clock", "icount", "--console", str(folder / "console"))
        rows = {"boot to the shell, and keep it": _user_seconds(["kinst-run", "-q", *memory, *console, *boot, image])}
        start = ["kinst-run", "--from", file, *_FIRST_LINE, image]
        rows["first start from it: unpacked"] = _user_seconds(start)
        rows["later starts: a program's first line"] = min(_user_seconds(start) for _ in range(3))
        rows["the same without a snapshot: no boot"] = min(
            _user_seconds(["kinst-run", *memory, *_FIRST_LINE, image]) for _ in range(3)
        )
        whole = next(iter(rows.values()))
        for what, seconds in rows.items():
            print(f"{what:40}{seconds:>10.2f}{seconds / whole:>11.1%}")


if __name__ == "__main__":
    main()
