"""64-bit images with a Multiboot header, as QEMU's -kernel takes them."""

import struct
import subprocess
from pathlib import Path

import pytest

from kinst.runtime.live.long_mode import bootable
from kinst.runtime.live.multiboot_file import as_32_bit, is_for_multiboot
from kinst.targets.errors import UsageError
from kinst.targets.image import Image, open_image
from tests.runtime.live.qemus import needs
from tests.writers.elf import EM_X86_64, PAGE, Part, elf64

LOW, CODE, DATA = 0x10_0000, 0x10_4000, 0x20_0000  # where it is loaded; data are linked far away
HIGH = 0xFFFF_FFFF_8000_0000
MAGIC, FLAGS = 0x1BAD_B002, 3
MARK = 0x1234_5678
HEADER = struct.pack("<3I", MAGIC, FLAGS, -(MAGIC + FLAGS) & 0xFFFF_FFFF)
ENTRY = CODE + len(HEADER)


def checks() -> bytes:
    """32-bit code that says K if a Multiboot loader has loaded all, else F, and ends QEMU."""
    rest = bytes.fromhex("b04b eb02 b046 66baf803 ee 66baf400 ee f4 ebfd")  # al = 'K'; al = 'F'; the port; the end
    bss = b"\xa1" + struct.pack("<I", DATA + PAGE) + bytes.fromhex("85c0 7504") + rest  # jne: over al = 'K'
    data = b"\xa1" + struct.pack("<I", DATA) + b"\x3d" + struct.pack("<I", MARK) + b"\x75" + bytes((len(bss[:9]) + 4,))
    loader = b"\x3d" + struct.pack("<I", 0x2BAD_B002) + b"\x75" + bytes((len(data) + len(bss[:9]) + 4,))
    return loader + data + bss


def image_of(folder: Path, data_at: int = DATA) -> Image:
    """Its header is further back in the file than QEMU looks."""
    parts = [
        Part(".low", LOW, bytes(3 * PAGE), 4),
        Part(".boot", CODE, HEADER + checks(), 5),
        Part(".data", HIGH + DATA, struct.pack("<I", MARK), 6, size=2 * PAGE, load_address=data_at),
    ]
    path = folder / "kernel.elf"
    path.write_bytes(elf64(EM_X86_64, ENTRY, parts))
    return open_image(path)


def test_qemu_loads_and_enters_it(tmp_path: Path) -> None:
    needs("qemu-system-x86_64")
    image, file = image_of(tmp_path), tmp_path / "kernel32.elf"
    assert is_for_multiboot(image)
    with file.open("wb") as out:
        for offset, piece in as_32_bit(image):
            out.seek(offset)
            out.write(piece)
    words = ["qemu-system-x86_64", "-display", "none", "-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4"]
    done = subprocess.run([*words, "-m", "16M", "-kernel", str(file)], capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (b"K", b"")


def test_what_is_beyond_its_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="belongs at 0x100000 and above, and Multiboot ends at 4 GiB"):
        as_32_bit(image_of(tmp_path, 1 << 32))
    high = tmp_path / "high.elf"
    high.write_bytes(elf64(EM_X86_64, 1 << 32, [Part(".text", 1 << 32, b"\xf4", 5)]))
    with pytest.raises(UsageError, match="belongs at 0x100000000 and above, and what enters it ends at 4 GiB"):
        bootable(open_image(high), None)
