"""What a boot loader is given, /boot/vmlinuz and its like -> the kernel's ELF file in it, layer by layer.

    compressed       Image.gz, vmlinux.xz, ...        what it was made from, which may be another of these
    "HdrS" at 0x202  bzImage of amd64                 the compressed vmlinux that its decompressor would unpack
    "zimg" at 4      EFI zboot of arm64 and riscv64   the compressed Image in it
    Image of arm64 and riscv64                        an ELF file is made of it: `raw_kernel`

None of them is written again: a loader that unpacks one checks it, or knows where its parts are.
Documentation/arch/x86/boot.rst; drivers/firmware/efi/libstub/zboot-header.S.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.compression import compression_of, decompressed
from kinst.targets.errors import ImageError
from kinst.targets.packed.layer import Layer
from kinst.targets.packed.raw_kernel import elf_of_image, facts_of

LARGEST: Final = 1 << 30  # bytes of a kernel; a vmlinux with debug information has 600 MB
_MAGICS: Final = 16  # bytes at the start of a file that show its compression
_ELF: Final = b"\x7fELF"
_OLDEST_PROTOCOL: Final = 0x208  # of bzImages that say where their payload is
_SECTOR: Final = 512


def boot_layer(data: NDArray[np.uint8], head: bytes) -> Layer | None:
    """What kind of file it is, by its first bytes, and its content; None: unknown here.

    Raises:
        ImageError: it is damaged, or of a kind that holds no ELF file.
    """
    name = compression_of(head[:_MAGICS])
    if name is not None:
        return Layer(name, _decompressed(data))
    if head[0x202:0x206] == b"HdrS" and head[0x1FE:0x200] == b"\x55\xaa":
        return Layer("bzImage", _payload(data, head))
    if head[:2] == b"MZ" and head[4:8] == b"zimg":
        return Layer("EFI zboot", _zboot(data, head))
    made = elf_of_image(data)
    return None if made is None else Layer("Image", made)


def is_boot_image(head: bytes) -> bool:
    """Whether a file that begins so, with at least 0x264 bytes if it has them, is a kernel as boot loaders are given
    it. One that is only compressed does not count: many other files are that."""
    return head[0x202:0x206] == b"HdrS" or (head[:2] == b"MZ" and head[4:8] == b"zimg") or facts_of(head) is not None


def _decompressed(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.frombuffer(decompressed(data.tobytes(), LARGEST), np.uint8)


def _payload(data: NDArray[np.uint8], head: bytes) -> NDArray[np.uint8]:
    """0x1f1 setup_sects, a byte (0: 4)   0x206 version   0x248 payload_offset, from the end of the real-mode code
    0x24c payload_length"""
    version = _number(head, 0x206, 2)
    if version < _OLDEST_PROTOCOL:
        raise ImageError(
            f"a bzImage of boot protocol {version >> 8}.{version & 0xFF}, older than 2.8: give its vmlinux"
        )
    start, size = ((head[0x1F1] or 4) + 1) * _SECTOR + _number(head, 0x248, 4), _number(head, 0x24C, 4)
    if not size:
        raise ImageError("what boots as a bzImage but has no Linux in it: give the ELF file it was made from")
    found = _inside(data, start, size, "bzImage")
    if compression_of(found[:_MAGICS].tobytes()) is None and found[:4].tobytes() != _ELF:
        raise ImageError("a bzImage whose kernel is compressed in a way that is not known: give its vmlinux")
    return found


def _zboot(data: NDArray[np.uint8], head: bytes) -> NDArray[np.uint8]:
    """0 "MZ"   4 "zimg"   8 offset and size of the payload   24 name of its compression"""
    found = _inside(data, _number(head, 8, 4), _number(head, 12, 4), "EFI zboot image")
    if compression_of(found[:_MAGICS].tobytes()) is None:
        name = head[24:56].split(b"\0")[0].decode("ascii", "backslashreplace")
        raise ImageError(f"an EFI zboot image that is compressed with {name!r}, which is not known")
    return found


def _inside(data: NDArray[np.uint8], start: int, size: int, what: str) -> NDArray[np.uint8]:
    if not size or start + size > len(data):
        raise ImageError(f"truncated: the kernel in this {what} has {size:#x} bytes at {start:#x} of {len(data):#x}")
    return data[start : start + size]


def _number(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "little")
