"""The first bytes of a file that cannot be read as an image -> what it is, and what to do about it.

Kept libraries (libmagic, puremagic) know more kinds of files, few of boards, and not what helps here.
"""

from typing import Final

HEAD: Final = 0x9000  # bytes that are looked at, if there are as many

_TAKE_OUT: Final = "take the image out of it first"
_MOUNT: Final = "mount it, and take the image out"
_ELF_OF_IT: Final = "give the ELF file it was made from, or say where it is loaded (--raw MACHINE@ADDRESS)"
_32_BIT: Final = "only 64-bit images can be probed"
# Offset, bytes there, what it is. The first that fits counts: those with more bytes, and at places of their own, first.
_KINDS: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0x24, b"\x18\x28\x6f\x01", f"a zImage of 32-bit ARM: {_32_BIT}"),
    (257, b"ustar", f"a tar archive: {_TAKE_OUT}"),
    (0x8001, b"CD001", f"a CD image (ISO 9660): {_MOUNT}"),
    (0x200, b"EFI PART", f"a disk image with a GPT: {_MOUNT}"),
    (0x438, b"\x53\xef", f"an ext2, ext3 or ext4 file system: {_MOUNT}"),
    (0x36, b"FAT1", f"a FAT file system: {_MOUNT}"),
    (0x52, b"FAT32", f"a FAT file system: {_MOUNT}"),
    (4, b"eGON.", f"a boot loader for Allwinner's boot ROM (eGON): {_ELF_OF_IT}; what follows it may be a FIT image"),
    (16, b"@AML", f"a boot loader for Amlogic's boot ROM: {_ELF_OF_IT}"),
    (0x10, b"\x5a\xa5\xf0\x0f", f"a flash image with Intel's descriptor: {_TAKE_OUT}"),
    (0, b"RKNS", f"a boot loader for Rockchip's boot ROM: {_ELF_OF_IT}"),
    (0, b"\x3b\x8c\xdc\xfc", f"a boot loader for Rockchip's boot ROM: {_ELF_OF_IT}"),
    (0, b"\x01\x00\x64\xaa", f"a package of Trusted Firmware (FIP): {_TAKE_OUT} (fiptool unpack)"),
    (0, b"UF2\nWQ]\x9e", "a UF2 file: convert it to a raw binary, and say where it is loaded (--raw MACHINE@ADDRESS)"),
    (0, b"hsqs", f"a squashfs file system: {_TAKE_OUT} (unsquashfs)"),
    (0, b"UBI#", f"a UBI image: {_TAKE_OUT}"),
    (0, b"\x31\x18\x10\x06", f"a UBIFS file system: {_TAKE_OUT}"),
    (0, b"\x85\x19", f"a JFFS2 file system: {_TAKE_OUT}"),
    (0, b"\x45\x3d\xcd\x28", f"a cramfs file system: {_TAKE_OUT}"),
    (0, b"-rom1fs-", f"a romfs file system: {_TAKE_OUT}"),
    (0, b"QFI\xfb", f"a disk image (qcow2): {_MOUNT}"),
    (0, b"KDMV", f"a disk image (VMDK): {_MOUNT}"),
    (0, b"070701", f"a cpio archive: {_TAKE_OUT}; --initrd takes it as an initial file system"),
    (0, b"070707", f"a cpio archive: {_TAKE_OUT}"),
    (0, b"!<arch>", f"an archive (.a or .deb): {_TAKE_OUT}"),
    (0, b"\xed\xab\xee\xdb", f"an RPM package: {_TAKE_OUT}"),
    (0, b"PK\x03\x04", f"a zip archive: {_TAKE_OUT}"),
    (0, b"7z\xbc\xaf\x27\x1c", f"a 7z archive: {_TAKE_OUT}"),
    (0, b"Rar!", f"a RAR archive: {_TAKE_OUT}"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O file: only ELF images can be probed"),
    (0, b"\xce\xfa\xed\xfe", f"a Mach-O file: {_32_BIT}"),
    (0, b"\xca\xfe\xba\xbe", "a Mach-O file for several machines, or a Java class: only ELF images can be probed"),
    (0, b"\0asm", "WebAssembly: only ELF images can be probed"),
    (0, b"BC\xc0\xde", "LLVM's bitcode: compile it first"),
    (0, b"MZ", f"a PE/EFI image or a DOS program that is not known: {_ELF_OF_IT}"),
    (0, b"#!", "a script"),
    (0, b"%PDF", "a PDF document"),
    (0x1FE, b"\x55\xaa", f"a boot sector or a disk image: {_MOUNT}"),
)


def kind_of(head: bytes) -> str:
    """What the file is, and what to do about it.

    Args:
        head: its first `HEAD` bytes; fewer tell less.
    """
    found = next((what for at, magic, what in _KINDS if head[at : at + len(magic)] == magic), None)
    return found or "no ELF magic at the start: a raw binary is read with --raw MACHINE@ADDRESS"
