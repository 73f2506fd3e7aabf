"""The real images that documents use and `kinst-samples --fetch` gets: each exactly one file of one Debian package."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class DebianImage:
    """A file of a package, in one version.

    Attributes:
        package, version, architecture: of the package; the version with its epoch.
        source: the source package, whose folder of the archive has it.
        suite: a suite of Debian that had this version.
        packed: bytes of the package.
        member: the whole path in the package, a regular expression; ``.gz`` is decompressed.
        size, sha256: of the file, decompressed.
        place: where the documents have it, below the folder that they work in.
    """

    package: str
    version: str
    architecture: str
    source: str
    suite: str
    packed: int
    member: str
    size: int
    sha256: str
    place: str

    @property
    def path(self) -> str:
        """Of the package, below an archive's top. Names of files have no epoch."""
        folder = self.source[:4] if self.source.startswith("lib") else self.source[0]
        version = self.version.partition(":")[2] or self.version
        return f"pool/main/{folder}/{self.source}/{self.package}_{version}_{self.architecture}.deb"


def _opensbi(version: str, suite: str, packed: int, size: int, sha256: str, place: str) -> DebianImage:
    member = "usr/lib/riscv64-linux-gnu/opensbi/generic/fw_jump.elf"
    return DebianImage("opensbi", version, "all", "opensbi", suite, packed, member, size, sha256, place)


def _u_boot(board: str, size: int, sha256: str, place: str) -> DebianImage:
    member = f"usr/lib/u-boot/{board}/uboot.elf"
    version, packed = "2025.01-3+deb13u1", 2_330_704
    return DebianImage("u-boot-qemu", version, "all", "u-boot", "trixie", packed, member, size, sha256, place)


def _busybox(architecture: str, packed: int, size: int, sha256: str, place: str) -> DebianImage:
    return DebianImage(
        "busybox-static",
        "1:1.37.0-6+b9",
        architecture,
        "busybox",
        "trixie",
        packed,
        "usr/bin/busybox",
        size,
        sha256,
        place,
    )


def _linux(
    release: str, version: str, architecture: str, suite: str, packed: int, size: int, sha256: str, place: str
) -> DebianImage:
    """A kernel with its debug information."""
    package, member = f"linux-image-{release}-dbg", r"usr/lib/debug/(?:.*/)?vmlinux[^/]*"
    return DebianImage(package, version, architecture, "linux", suite, packed, member, size, sha256, place)


IMAGES: Final[Mapping[str, DebianImage]] = MappingProxyType(
    {
        "opensbi-1.6": _opensbi(
            "1.6-1",
            "trixie",
            204_072,
            180_416,
            "7294cc5d94c2657a5b2081bc5c96add45b03149148501f4480044834863cd3d3",
            "opensbi/fw_jump.elf",
        ),
        "opensbi-1.1": _opensbi(
            "1.1-2",
            "bookworm",
            82_240,
            116_776,
            "4cd1a4486d59a9eed92891db21a80adc664fe99048dfad72a597ae2fdf365bfd",
            "opensbi-1.1/fw_jump.elf",
        ),
        "u-boot-riscv64": _u_boot(
            "qemu-riscv64",
            958_792,
            "9b680e82805ead2b20efb03a8101097a416e7e28236422fab0670b4e82eb2e94",
            "u-boot/u-boot.elf",
        ),
        "u-boot-arm64": _u_boot(
            "qemu_arm64",
            1_223_400,
            "366bcc9cc216d8e532306007dde5ada4233daf49a4a637652a8d2f69eb4c428b",
            "u-boot-arm64/u-boot.elf",
        ),
        "gnumach": DebianImage(
            "gnumach-image-1.8-amd64-up-dbg",
            "2:1.8+git20250702-1",
            "amd64",
            "gnumach",
            "trixie",
            1_865_964,
            r"boot/gnumach-1\.8-amd64-up-dbg\.gz",
            3_619_160,
            "d09642d3e2b3262e2a9281602bfac7fbfdc11264b1cae1a09f1b11cc59990e8e",
            "gnumach/gnumach",
        ),
        "linux-6.1-amd64": _linux(
            "6.1.0-50-cloud-amd64",
            "6.1.176-1",
            "amd64",
            "bookworm",
            281_755_500,
            587_788_136,
            "b4cfb44e3e7cf46b28a420f2ec0f84ae6c71bfd9bbb7fc2f32c5b8c3947592c4",
            "linux/vmlinux",
        ),
        "linux-6.1-arm64": _linux(
            "6.1.0-50-cloud-arm64",
            "6.1.176-1",
            "arm64",
            "bookworm",
            259_909_320,
            272_430_480,
            "a5736b0e24c5d2ce54917937894cb8f76700cdbe8ae2ecd927e180057779207d",
            "linux-arm64/vmlinux",
        ),
        "linux-6.12-riscv64": _linux(
            "6.12.107+deb13-riscv64",
            "6.12.107-1",
            "riscv64",
            "trixie",
            1_025_934_668,
            301_997_576,
            "2be94b378a3b91eb80b0f704a72a4ad9cfb964d7f447ca59ec4b4822fca70131",
            "linux-riscv64/vmlinux",
        ),
        "busybox-amd64": _busybox(
            "amd64",
            955_316,
            2_024_544,
            "7ae95c260622412ceba6eb9f45d68f616cdc091a1d71d6c0a08b5875bb2c31dd",
            "busybox/busybox",
        ),
        "busybox-arm64": _busybox(
            "arm64",
            847_552,
            1_975_064,
            "7d93682be37cf6ed46699f6fff546b80bf133cf8ec342c2d04bc23387f78bc34",
            "busybox-arm64/busybox",
        ),
        "busybox-riscv64": _busybox(
            "riscv64",
            941_532,
            1_614_632,
            "659d3048d0849dcd03308ece5214c896f657dde1c76ab7a30e9727e3ed8d309b",
            "busybox-riscv64/busybox",
        ),
    }
)
