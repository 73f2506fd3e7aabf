"""Debian, from its own packages on a virtio disk: systemd up to a login, what it says of itself, and its power-off.

    python -m tests.debian_boots [MACHINE...]        (`poe debian`)

Makes a file system a machine with `samples/linux/mkdebian`, once, in the cache, and prints a row a machine: seconds of
user CPU of QEMU's run, of our plain one, of ours with the entries of all functions counted, and of `kinst-run --on`
with a kept image; how many entries were counted; and what is not alike. Alike must be what the guest itself answers:
whether systemd is content, which units failed, and what the kernel calls an error. Ours take some ten minutes each.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tests.images import CACHE, downloading_alone, real_image
from tests.linux_programs import qemu, qemu_board

MACHINES: Final = ("amd64", "arm64", "riscv64")
MEMORY: Final = "512M"
# By its clock, a host with much else to do gets to do nothing for the guest but the interrupts of its timer.
OWN: Final = ("--memory", MEMORY, "--clock", "icount")
APPEND: Final = {
    "amd64": "console=ttyS0 panic=-1",
    "arm64": "console=ttyAMA0 panic=-1",
    "riscv64": "console=ttyS0 panic=-1",
}
PROMPT: Final = r"(?:login: |# )$"
QUESTIONS: Final = (
    "systemctl is-system-running --wait",
    "systemctl --failed --no-legend --plain",
    r"dmesg -l emerg,alert,crit,err | sed 's/^\[[^]]*\] //'",
    "systemctl get-default; uname -sm; findmnt -n -o SOURCE,FSTYPE /; cat /proc/sys/kernel/tainted",
)
_COUNTED: Final = 'fbt:::entry { @ = count(); } END { printa("entries %@d\\n", @); }'
_BOUND: Final = 3600  # seconds a run
_COLUMNS: Final = ("machine", "QEMU", "plain", "plain/", "all", "all/", "kept", "kept/", "entries", "")
_LAYOUT: Final = "{:8} {:>7} {:>7} {:>6} {:>7} {:>6} {:>7} {:>6} {:>13}  {}"


@dataclass(frozen=True, slots=True)
class Run:
    """What the guest answered, seconds of user CPU, the entries that were counted, and what went wrong."""

    answers: tuple[str, ...]
    seconds: float
    entries: int
    error: str


def typed(questions: Sequence[str]) -> str:
    """A login, the questions in a line, so that nothing is echoed between answers, and the power-off."""
    return f"root\nstty cols 200; echo be''gin; {'; '.join(questions)}; echo e''nd\nsystemctl poweroff\n"


def answers(console: str) -> tuple[str, ...]:
    """What came between the marks, without colours and what the kernel printed meanwhile."""
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", console)
    found = re.search(r"(?ms)^begin$(.*)^end$", text)
    lines = found[1].splitlines() if found else []
    return tuple(line.rstrip() for line in lines if line.strip() and not re.match(r"\[ *\d+\.\d+\] ", line))


def file_systems(machine: str) -> Path:
    """The folder with `root.ext4` and `initrd.cpio`, which are made at the first time."""
    folder = CACHE / "debian" / machine
    kernel = real_image(f"linux-{machine}")
    with downloading_alone():
        if not (folder / "initrd.cpio").exists():
            subprocess.run([sys.executable, "samples/linux/mkdebian", str(kernel), str(folder)], check=True)
    return folder


def ours(machine: str, *words: str, questions: Sequence[str] = QUESTIONS) -> Run:
    """A run by kinst-run, on our own machine or, by `words`, under QEMU."""
    folder = file_systems(machine)
    with tempfile.TemporaryDirectory() as text:
        commands, console = Path(text) / "commands", Path(text) / "console"
        commands.write_text(typed(questions))
        files = ("--disk", str(folder / "root.ext4"), "--initrd", str(folder / "initrd.cpio"))
        told = ("--append", APPEND[machine], "--input", str(commands), "--prompt", PROMPT, "--console", str(console))
        before = _spent()
        done = subprocess.run(
            ["timeout", str(_BOUND), "kinst-run", "-q", *files, *told, *words, str(real_image(f"linux-{machine}"))],
            capture_output=True,
            text=True,
            check=False,
        )
        printed = console.read_text(errors="replace") if console.exists() else ""
    counted = re.search(r"(?m)^entries (\d+)$", done.stdout)
    said = f"exit code {done.returncode}: {done.stderr[-300:]}" if done.returncode else ""
    return Run(answers(printed), _spent() - before, int(counted[1]) if counted else 0, said)


def under_qemu(machine: str, questions: Sequence[str] = QUESTIONS) -> Run:
    """A run of QEMU's, which is typed to by us."""
    folder = file_systems(machine)
    disk = ("-drive", f"file={folder / 'root.ext4'},format=raw,if=none,id=root,snapshot=on")
    device = "virtio-blk-pci" if machine == "amd64" else "virtio-blk-device"
    words = (*disk, "-device", f"{device},drive=root", "-initrd", str(folder / "initrd.cpio"))
    with tempfile.TemporaryDirectory() as text:
        kernel = qemu(machine, real_image(f"linux-{machine}"), Path(text), "-m", MEMORY, "-net", "none")
        before = _spent()
        process = subprocess.Popen(
            ["timeout", str(_BOUND), *kernel, *words, "-append", APPEND[machine]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        printed = _conversation(process.stdin, process.stdout, typed(questions).splitlines())
        status = process.wait()
    return Run(answers(printed), _spent() - before, 0, f"exit code {status}" if status else "")


def _conversation(keyboard: IO[bytes], console: IO[bytes], lines: Sequence[str]) -> str:
    """Type each line when the console's last one is a prompt. Returns all that was printed."""
    printed, seen, rest = b"", 0, list(lines)
    while chunk := os.read(console.fileno(), 1 << 16):
        printed += chunk
        last = re.sub(rb"\x1b\[[\d;?]*[A-Za-z]|\r", b"", printed[seen:].rpartition(b"\n")[2])
        if rest and re.search(PROMPT.encode(), last):
            seen = len(printed)
            keyboard.write(rest.pop(0).encode() + b"\n")
            keyboard.flush()
    return printed.decode(errors="replace")


def _spent() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def row(machine: str) -> tuple[str, bool]:
    """Boot a machine's Debian five times; its row of the table, and whether all is as it should be."""
    on = ("--on", " ".join((*qemu_board(machine), "-m", MEMORY, "-net", "none")))
    counting = "-n", _COUNTED
    beside, plain, counted = under_qemu(machine), ours(machine, *OWN), ours(machine, *OWN, *counting)
    _, kept = ours(machine, *on, *counting), ours(machine, *on, *counting)
    wrong = [*_wrong(beside, plain, counted, kept)]
    cells = [f"{beside.seconds:.1f}"]
    for run in (plain, counted, kept):
        cells += [f"{run.seconds:.1f}", f"{run.seconds / beside.seconds:.1f}x"]
    text = _LAYOUT.format(machine, *cells, f"{counted.entries:,}", "; ".join(wrong) or "as it should be")
    return text, not wrong


def _wrong(beside: Run, plain: Run, counted: Run, kept: Run) -> Iterator[str]:
    for way, run in (("QEMU", beside), ("plain", plain), ("all", counted), ("kept", kept)):
        if run.error:
            yield f"{way}: {run.error}"
        elif not run.answers:
            yield f"{way}: no login"
        elif run.answers != beside.answers:
            unlike = sorted({*run.answers} ^ {*beside.answers})
            yield f"{way}: not as under QEMU: {unlike[0] if unlike else 'the order of lines'}"


def main() -> int:
    """0 if all is as it should be."""
    parser = argparse.ArgumentParser(prog="poe debian", description="Boot Debian from a disk, and ask how it is.")
    parser.add_argument("machines", nargs="*", default=MACHINES, metavar="MACHINE", help=f"of {', '.join(MACHINES)}")
    print(_LAYOUT.format(*_COLUMNS), flush=True)
    rows = []
    for machine in parser.parse_args().machines:
        rows.append(row(machine))
        print(rows[-1][0], flush=True)
    return 0 if all(is_well for _, is_well in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
