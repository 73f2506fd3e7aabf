"""Boards that ship as board files, each with Debian's firmware for it: up to its prompt, plain and with all functions
probed. `poe boots` prints a row for each; `tests/system/test_board_boots.py` runs them as long tests. Where QEMU has
the board its console is compared, too: of those here it is the Raspberry Pi 3 alone. (Its sifive_u is the Unleashed.)
"""

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinst.targets.elf.header import PT_LOAD
from kinst.targets.image import open_image
from tests.image_list import RealImage
from tests.images import members_of, real_image

_BOUND: Final = 300  # seconds a run
_FDT: Final = b"\xd0\x0d\xfe\xed"
_PROGRAM: Final = 'fbt:::entry { @ = count(); } END { printa("%@d\\n", @); }'
AS_UNDER_QEMU: Final = ("as it should be", "as it should be, and under QEMU")
LAYOUT: Final = "{:18} {:>12} {:>12}  {}"
_KEY: Final = "Hit any key"
_DEBIAN: Final = ("linux-image-6\\.12\\.\\d+\\+deb13-arm64", "arm64", "trixie")


@dataclass(frozen=True, slots=True)
class BoardBoot:
    """A board and its firmware. `tree`: the package's file with its device tree, which may be at the end of more;
    `is_behind`: it is where the image's file ends, as U-Boot's build has it. `start`: lines for [start] where the build
    of the firmware decides. `words`: for kinst-run. `following`: what the firmware starts, the file of the tree itself,
    with its place, or the name of an image. `qemu`: the words for QEMU's board, if it has it."""

    image: str
    tree: RealImage
    prompt: str = "=> "
    start: str = ""
    words: tuple[str, ...] = ()
    following: str = ""
    qemu: tuple[str, ...] = ()
    is_behind: bool = False


BOOTS: Final = {
    "pc-amd64": BoardBoot(
        "u-boot-amd64",
        RealImage("u-boot-qemu", "all", "trixie", r"usr/lib/u-boot/qemu-x86_64/u-boot\.rom"),
        is_behind=True,
    ),
    "pinephone": BoardBoot(
        "u-boot-sunxi",
        RealImage("u-boot-sunxi", "arm64", "trixie", "usr/lib/u-boot/pinephone/sun50i-a64-pinephone-1.2.dtb"),
    ),
    "rk3399": BoardBoot(
        "u-boot-rockchip",
        RealImage("u-boot-rockchip", "arm64", "bookworm", "usr/lib/u-boot/firefly-rk3399/u-boot.bin"),
        start="device-tree = {}",
    ),
    "rk3399-bl31": BoardBoot(
        "tf-a-rk3399",
        RealImage("u-boot-rockchip", "arm64", "bookworm", "usr/lib/u-boot/firefly-rk3399/u-boot.bin"),
        following="@0x200000",
    ),
    "sun50i-a64-bl31": BoardBoot(
        "tf-a-sun50i-a64",
        RealImage("u-boot-sunxi", "arm64", "trixie", "usr/lib/u-boot/pinephone/sun50i-a64-pinephone-1.2.dtb"),
        words=("--raw", "arm64@0x44000"),
        following="u-boot-sunxi",
    ),
    "rpi3": BoardBoot(
        "u-boot-rpi3",
        RealImage(*_DEBIAN, "usr/lib/linux-image-.*/broadcom/bcm2837-rpi-3-b.dtb"),
        "U-Boot> ",
        qemu=("qemu-system-aarch64", "-M", "raspi3b"),
    ),
    "rpi4": BoardBoot(
        "u-boot-rpi", RealImage(*_DEBIAN, "usr/lib/linux-image-.*/broadcom/bcm2711-rpi-4-b.dtb"), "U-Boot> "
    ),
    "visionfive2": BoardBoot(
        "u-boot-starfive",
        RealImage("u-boot-starfive", "riscv64", "trixie", "usr/lib/u-boot/starfive_visionfive2/u-boot.bin"),
        "StarFive # ",
    ),
    "hifive-unmatched": BoardBoot(
        "u-boot-sifive",
        RealImage("u-boot-sifive", "riscv64", "trixie", "usr/lib/u-boot/sifive_unmatched/u-boot.bin"),
    ),
}


@dataclass(frozen=True, slots=True)
class Booted:
    """What a run printed, and what went wrong, if anything."""

    console: str
    output: str
    error: str

    @property
    def lines(self) -> list[str]:
        """What it printed before it counted down: how far that comes depends on when the key arrives.

        Without what U-Boot says of a host that is slow.
        """
        text = self.console.partition(_KEY)[0]
        return re.sub(r"cyclic function .*\r?\n", "", text).splitlines()


class Firmware:
    """A board with its firmware, and a folder for what its runs write."""

    def __init__(self, name: str, folder: Path) -> None:
        self.boot, self._folder = BOOTS[name], folder
        self.image = real_image(self.boot.image)
        (package,) = members_of(f"{name}-tree", self.boot.tree)
        content = package.read_bytes()
        at = content.rindex(_FDT)
        self.tree = folder / "tree.dtb"
        self.tree.write_bytes(content[at:])
        self.board, self._words = name, [*self.boot.words]
        if self.boot.following.startswith("@"):
            self._words += ["--load", f"{package}{self.boot.following}"]
        elif self.boot.is_behind:
            ends = (one.address + one.file_size for one in open_image(self.image).segments if one.kind == PT_LOAD)
            self._words += ["--load", f"{self.tree}@{max(ends):#x}"]
        else:
            self._words += ["--dtb", str(self.tree)]
            self._words += ["--load", f"following={real_image(self.boot.following)}"] if self.boot.following else []
        if self.boot.start:
            self.board = str(folder / f"{name}.toml")
            start = self.boot.start.format(hex(open_image(self.image).segments[0].address + at))
            Path(self.board).write_text(f'extends = "{name}"\n[start]\n{start}\n')

    def run(self, *words: str) -> Booted:
        """Up to the prompt, which a key brings: without one U-Boot looks for something to start."""
        output = self._folder / "output"
        output.write_text("")
        until = ("--until", f"^{re.escape(self.boot.prompt)}", "--timeout", "60s")
        command = ["kinst-run", "-q", "--board", self.board, *self._words, *until, *words]
        result = subprocess.run(
            [*command, "-o", str(output), str(self.image)],
            input="\n",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_BOUND,
            check=False,
        )
        error = f"exit code {result.returncode}: {result.stderr[-300:]}" if result.returncode else ""
        return Booted(result.stdout, output.read_text(), error)

    def probed(self) -> Booted:
        """The same with the entries of all functions counted."""
        return self.run("-n", _PROGRAM)

    def under_qemu(self) -> Booted | None:
        """QEMU's console up to the countdown, as it loads a kernel that is no ELF file; None: it has no such board, or
        is not installed."""
        if not self.boot.qemu or shutil.which(self.boot.qemu[0]) is None:
            return None
        (segment,) = (one for one in open_image(self.image).segments if one.kind == PT_LOAD)
        binary, console = self._folder / "image.bin", self._folder / "qemu-console"
        content = open_image(self.image).data[segment.offset : segment.offset + segment.file_size]
        binary.write_bytes(content.tobytes())
        # U-Boot's first lines come from one UART, the others from the other.
        serial = (
            "-chardev",
            f"file,id=both,mux=on,path={console}",
            "-serial",
            "chardev:both",
            "-serial",
            "chardev:both",
        )
        words = ("-display", "none", "-monitor", "none", *serial, "-kernel", str(binary), "-dtb", str(self.tree))
        with subprocess.Popen(
            [*self.boot.qemu, *words], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            end = time.monotonic() + _BOUND
            while process.poll() is None and time.monotonic() < end and _KEY not in _text(console):
                time.sleep(0.2)
            process.kill()
        text = _text(console)
        return Booted(text, "", "" if _KEY in text else "QEMU: no countdown")


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


def row(name: str) -> tuple[str, bool]:
    """Boot a board twice; its row of the table, and whether all is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        firmware = Firmware(name, Path(folder))
        plain, probed, beside = firmware.run(), firmware.probed(), firmware.under_qemu()
    wrong = plain.error or probed.error or ("" if plain.lines == probed.lines else "prints something else, probed")
    if beside is not None:
        wrong = (
            wrong or beside.error or ("" if plain.lines == beside.lines else "prints something else than under QEMU")
        )
    lines = f"{len(plain.lines):,}"
    count = probed.output.strip()
    return LAYOUT.format(
        name, lines, f"{int(count):,}" if count.isdigit() else "-", wrong or AS_UNDER_QEMU[beside is not None]
    ), not wrong
