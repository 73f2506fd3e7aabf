"""The real images that tests and benchmarks know, by name: which member of which Debian package each is."""

import re
from dataclasses import dataclass

from kinst.samples import debian_images


@dataclass(frozen=True, slots=True)
class RealImage:
    """A member of a Debian package. `package` is a regular expression; the highest matching version is taken."""

    package: str
    architecture: str
    suite: str
    member: str


def documented(name: str) -> RealImage:
    """One that users get, too: in the version that the documents use (`EXACT` knows it), never a newer one."""
    image = debian_images.IMAGES[name]
    return RealImage(re.escape(image.package), image.architecture, image.suite, image.member)


DEBUG_KERNEL = r"usr/lib/debug/(?:.*/)?vmlinux[^/]*"
# Name in the tests -> name in `kinst-samples --fetch`, which gets exactly that.
EXACT = {name: name for name in debian_images.IMAGES} | {
    "linux-amd64": "linux-6.1-amd64",
    "linux-arm64": "linux-6.1-arm64",
    "linux-riscv64": "linux-6.12-riscv64",
}
# What every run of the tests downloads: 17 MB of packages.
SMALL = {
    "opensbi-1.1": documented("opensbi-1.1"),
    "opensbi-1.6": documented("opensbi-1.6"),
    "u-boot-riscv64": documented("u-boot-riscv64"),
    "u-boot-riscv64-smode": RealImage("u-boot-qemu", "all", "trixie", "usr/lib/u-boot/qemu-riscv64_smode/uboot.elf"),
    "u-boot-arm64": documented("u-boot-arm64"),
    "u-boot-amd64": RealImage("u-boot-qemu", "all", "trixie", "usr/lib/u-boot/qemu-x86_64/uboot.elf"),
    "u-boot-arm32": RealImage("u-boot-qemu", "all", "trixie", "usr/lib/u-boot/qemu_arm/uboot.elf"),
    "u-boot-mips64": RealImage("u-boot-qemu", "all", "trixie", "usr/lib/u-boot/malta64el/uboot.elf"),
    "u-boot-ppc": RealImage("u-boot-qemu", "all", "trixie", "usr/lib/u-boot/qemu-ppce500/uboot.elf"),
    "gnumach": documented("gnumach"),
    "xen-arm64": RealImage(
        r"xen-hypervisor-[0-9.]+-arm64-dbg", "arm64", "trixie", r"usr/lib/debug/boot/xen-syms-[0-9.]+-arm64"
    ),
}
# Other kinds and compilers (GCC, Clang, Go, Rust, D, OCaml, Pascal): `python -m tests.prove` asks for them.
MORE = {
    "u-boot-sunxi": RealImage("u-boot-sunxi", "arm64", "trixie", "usr/lib/u-boot/pinephone/uboot.elf"),
    "u-boot-rockchip": RealImage("u-boot-rockchip", "arm64", "bookworm", "usr/lib/u-boot/firefly-rk3399/uboot.elf"),
    "u-boot-amlogic": RealImage("u-boot-amlogic", "arm64", "bookworm", "usr/lib/u-boot/odroid-c2/uboot.elf"),
    "u-boot-mvebu": RealImage("u-boot-mvebu", "arm64", "trixie", "usr/lib/u-boot/mvebu_espressobin-88f3720/uboot.elf"),
    "u-boot-qcom": RealImage("u-boot-qcom", "arm64", "trixie", "usr/lib/u-boot/dragonboard410c/uboot.elf"),
    "u-boot-tegra": RealImage("u-boot-tegra", "arm64", "trixie", "usr/lib/u-boot/p2371-2180/uboot.elf"),
    "u-boot-rpi": RealImage("u-boot-rpi", "arm64", "trixie", "usr/lib/u-boot/rpi_4/uboot.elf"),
    "u-boot-rpi3": RealImage("u-boot-rpi", "arm64", "trixie", "usr/lib/u-boot/rpi_3/uboot.elf"),
    "u-boot-sifive": RealImage("u-boot-sifive", "riscv64", "trixie", "usr/lib/u-boot/sifive_unmatched/uboot.elf"),
    "u-boot-starfive": documented("u-boot-starfive"),
    "tf-a-rk3399": RealImage("arm-trusted-firmware", "arm64", "trixie", "usr/lib/arm-trusted-firmware/rk3399/bl31.elf"),
    "tf-a-rk3588": RealImage("arm-trusted-firmware", "arm64", "trixie", "usr/lib/arm-trusted-firmware/rk3588/bl31.elf"),
    "opensbi-1.9": RealImage("opensbi", "all", "forky", "usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.elf"),
    "xen-amd64": RealImage(
        r"xen-hypervisor-[0-9.]+-amd64-dbg", "amd64", "trixie", r"usr/lib/debug/boot/xen-syms-[0-9.]+-amd64"
    ),
    "xen-amd64-efi": RealImage(
        r"xen-hypervisor-[0-9.]+-amd64-dbg", "amd64", "trixie", r"usr/lib/debug/boot/xen-[0-9.]+-amd64\.efi\.elf"
    ),
    "xen-4.17-arm64": RealImage(
        r"xen-hypervisor-[0-9.]+-arm64-dbg", "arm64", "bookworm", r"usr/lib/debug/boot/xen-syms-[0-9.]+-arm64"
    ),
    "gnumach-smp": RealImage(
        r"gnumach-image-1\.8-amd64-smp-dbg", "amd64", "forky", "boot/gnumach-1.8-amd64-smp-dbg.gz"
    ),
    "gnumach-xen": RealImage(
        r"gnumach-image-1\.8-xen-amd64-dbg", "amd64", "trixie", "boot/gnumach-1.8-xen-amd64-dbg.gz"
    ),
    "busybox-amd64": documented("busybox-amd64"),
    "libc-amd64": RealImage("libc6", "amd64", "trixie", "usr/lib/x86_64-linux-gnu/libc.so.6"),
    "ld-amd64": RealImage("libc6", "amd64", "trixie", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
    "musl-amd64": RealImage("musl", "amd64", "trixie", "usr/lib/x86_64-linux-musl/libc.so"),
    "fzf-amd64": RealImage("fzf", "amd64", "trixie", "usr/bin/fzf"),
    "busybox-arm64": documented("busybox-arm64"),
    "libc-arm64": RealImage("libc6", "arm64", "trixie", "usr/lib/aarch64-linux-gnu/libc.so.6"),
    "ld-arm64": RealImage("libc6", "arm64", "trixie", "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"),
    "musl-arm64": RealImage("musl", "arm64", "trixie", "usr/lib/aarch64-linux-musl/libc.so"),
    "fzf-arm64": RealImage("fzf", "arm64", "trixie", "usr/bin/fzf"),
    "busybox-riscv64": documented("busybox-riscv64"),
    "libc-riscv64": RealImage("libc6", "riscv64", "trixie", "usr/lib/riscv64-linux-gnu/libc.so.6"),
    "ld-riscv64": RealImage("libc6", "riscv64", "trixie", "usr/lib/riscv64-linux-gnu/ld-linux-riscv64-lp64d.so.1"),
    "musl-riscv64": RealImage("musl", "riscv64", "trixie", "usr/lib/riscv64-linux-musl/libc.so"),
    "fzf-riscv64": RealImage("fzf", "riscv64", "trixie", "usr/bin/fzf"),
    "klibc-sh": RealImage("klibc-utils", "amd64", "trixie", "usr/lib/klibc/bin/sh"),
    "gh": RealImage("gh", "amd64", "trixie", "usr/bin/gh"),
    "ripgrep": RealImage("ripgrep", "amd64", "trixie", "usr/bin/rg"),
    "fd-arm64": RealImage("fd-find", "arm64", "trixie", "usr/lib/cargo/bin/fd"),
    "sudo-rs-riscv64": RealImage("sudo-rs", "riscv64", "trixie", "usr/lib/cargo/bin/sudo"),
    "dub": RealImage("dub", "amd64", "trixie", "usr/bin/dub"),
    "ocamlrun": RealImage("ocaml-base", "amd64", "trixie", "usr/bin/ocamlrun"),
    "fpc-amd64": RealImage(r"fp-compiler-[0-9.]+", "amd64", "trixie", r"usr/lib/x86_64-linux-gnu/fpc/[0-9.]+/ppcx64"),
    "fpc-arm64": RealImage(r"fp-compiler-[0-9.]+", "arm64", "trixie", r"usr/lib/aarch64-linux-gnu/fpc/[0-9.]+/ppca64"),
}
# Libraries with hand-written assembly, whose tables are among its code, and stripped as users have them.
LIBRARIES = {
    "libcrypto-amd64": RealImage("libssl3", "amd64", "bookworm", "usr/lib/x86_64-linux-gnu/libcrypto.so.3"),
    "libcrypto-arm64": RealImage("libssl3", "arm64", "bookworm", "usr/lib/aarch64-linux-gnu/libcrypto.so.3"),
    "libcrypto-3.5-amd64": RealImage("libssl3t64", "amd64", "trixie", "usr/lib/x86_64-linux-gnu/libcrypto.so.3"),
    "libcrypto-3.5-arm64": RealImage("libssl3t64", "arm64", "trixie", "usr/lib/aarch64-linux-gnu/libcrypto.so.3"),
    "libcrypto-riscv64": RealImage("libssl3t64", "riscv64", "trixie", "usr/lib/riscv64-linux-gnu/libcrypto.so.3"),
    "nettle-amd64": RealImage("libnettle8", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libnettle.so.8\.[0-9.]+"),
    "nettle-arm64": RealImage("libnettle8", "arm64", "bookworm", r"usr/lib/aarch64-linux-gnu/libnettle.so.8\.[0-9.]+"),
    "gnutls-amd64": RealImage("libgnutls30", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libgnutls.so.30\.[0-9.]+"),
    "gnutls-arm64": RealImage(
        "libgnutls30", "arm64", "bookworm", r"usr/lib/aarch64-linux-gnu/libgnutls.so.30\.[0-9.]+"
    ),
    "gcrypt-amd64": RealImage("libgcrypt20", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libgcrypt.so.20\.[0-9.]+"),
    "gcrypt-arm64": RealImage(
        "libgcrypt20", "arm64", "bookworm", r"usr/lib/aarch64-linux-gnu/libgcrypt.so.20\.[0-9.]+"
    ),
    "gmp-amd64": RealImage("libgmp10", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libgmp.so.10\.[0-9.]+"),
    "gmp-arm64": RealImage("libgmp10", "arm64", "bookworm", r"usr/lib/aarch64-linux-gnu/libgmp.so.10\.[0-9.]+"),
    "x264-amd64": RealImage("libx264-164", "amd64", "bookworm", "usr/lib/x86_64-linux-gnu/libx264.so.164"),
    "x264-arm64": RealImage("libx264-164", "arm64", "bookworm", "usr/lib/aarch64-linux-gnu/libx264.so.164"),
    "dav1d-amd64": RealImage("libdav1d6", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libdav1d.so.6\.[0-9.]+"),
    "dav1d-arm64": RealImage("libdav1d6", "arm64", "bookworm", r"usr/lib/aarch64-linux-gnu/libdav1d.so.6\.[0-9.]+"),
    "avcodec-amd64": RealImage(
        "libavcodec59", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libavcodec.so.59\.[0-9.]+"
    ),
    "avcodec-arm64": RealImage(
        "libavcodec59", "arm64", "bookworm", r"usr/lib/aarch64-linux-gnu/libavcodec.so.59\.[0-9.]+"
    ),
    "openblas-amd64": RealImage(
        "libopenblas0-pthread", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r.*\.so"
    ),
    "zstd-amd64": RealImage("libzstd1", "amd64", "bookworm", r"usr/lib/x86_64-linux-gnu/libzstd.so.1\.[0-9.]+"),
}
# Boards that do not make their own: each of these packages has all that are wanted of it.
DEVICE_TREES = {
    "dtbs-arm64": RealImage(
        *(r"linux-image-6\.1\.0-\d+-arm64-unsigned", "arm64", "bookworm"),
        r"usr/lib/linux-image-.*/(?:broadcom/bcm2837-rpi-3-b|xilinx/zynqmp-zcu102-rev1\.0)\.dtb",
    ),
    "dtbs-riscv64": RealImage(
        *(r"linux-image-6\.12\.\d+\+deb13-riscv64", "riscv64", "trixie"),
        r"usr/lib/linux-image-.*/(?:microchip|sifive)/.*\.dtb",
    ),
}
# Not linked (ET_REL).
MODULES = {
    "grub-amd64": RealImage("grub-efi-amd64-bin", "amd64", "trixie", "usr/lib/grub/x86_64-efi/kernel.img"),
    "grub-arm64": RealImage("grub-efi-arm64-bin", "arm64", "trixie", "usr/lib/grub/arm64-efi/kernel.img"),
    "grub-riscv64": RealImage("grub-efi-riscv64-bin", "riscv64", "trixie", "usr/lib/grub/riscv64-efi/kernel.img"),
}
LARGE = {
    "linux-amd64": documented("linux-6.1-amd64"),
    "linux-arm64": documented("linux-6.1-arm64"),
    "linux-riscv64": documented("linux-6.12-riscv64"),
    "linux-6.1-board-arm64": RealImage(r"linux-image-6\.1\.0-\d+-arm64-dbg", "arm64", "bookworm", DEBUG_KERNEL),
    "linux-6.12-amd64": RealImage(r"linux-image-6\.12\.\d+\+deb13-cloud-amd64-dbg", "amd64", "trixie", DEBUG_KERNEL),
    "linux-6.12-arm64": RealImage(r"linux-image-6\.12\.\d+\+deb13-cloud-arm64-dbg", "arm64", "trixie", DEBUG_KERNEL),
    "linux-7-riscv64": RealImage(r"linux-image-7\.\d+\.\d+\+deb14-riscv64-dbg", "riscv64", "forky", DEBUG_KERNEL),
}
# As they are installed, stripped: Debian's newest of each machine, one for real time, one with pages of 16 KiB.
INSTALLED = {
    name: RealImage(rf"linux-binary-7\.\d+\.\d+\+deb14-{flavour}", architecture, "sid", r"usr/lib/modules/.*/vmlinuz")
    for name, flavour, architecture in (
        ("vmlinuz-amd64", "amd64", "amd64"),
        ("vmlinuz-arm64", "arm64", "arm64"),
        ("vmlinuz-riscv64", "riscv64", "riscv64"),
        ("vmlinuz-rt-amd64", "rt-amd64", "amd64"),
        ("vmlinuz-rt-arm64", "rt-arm64", "arm64"),
        ("vmlinuz-16k-arm64", "arm64-16k", "arm64"),
    )
}
# Images in files of other kinds than ELF, as boards and firmware have them.
FILES = {
    "u-boot-starfive-bin": documented("u-boot-starfive-bin"),
    "fit-pinephone": RealImage(
        "u-boot-sunxi", "arm64", "trixie", r"usr/lib/u-boot/pinephone/u-boot-sunxi-with-spl\.fit\.itb"
    ),
    "fit-rock-pi-4": RealImage("u-boot-rockchip", "arm64", "trixie", r"usr/lib/u-boot/rock-pi-4-rk3399/u-boot\.itb"),
    "fit-visionfive2": RealImage(
        "u-boot-starfive", "riscv64", "trixie", r"usr/lib/u-boot/starfive_visionfive2/u-boot\.itb"
    ),
    "fit-unmatched": RealImage("u-boot-sifive", "riscv64", "trixie", r"usr/lib/u-boot/sifive_unmatched/u-boot\.itb"),
    "efi-amd64": RealImage("systemd-boot-efi", "amd64", "trixie", r".*/systemd-bootx64\.efi"),
    "efi-arm64": RealImage("systemd-boot-efi", "arm64", "trixie", r".*/systemd-bootaa64\.efi"),
    "efi-riscv64": RealImage("systemd-boot-efi", "riscv64", "trixie", r".*/systemd-bootriscv64\.efi"),
    "fd-amd64": RealImage("ovmf", "all", "trixie", r".*/OVMF_CODE_4M\.fd"),
    "fd-arm64-qemu": RealImage("qemu-efi-aarch64", "all", "trixie", r".*/QEMU_EFI\.fd"),
}
# Raw binaries: where they belong is not in the file.
BINARIES = {
    "tf-a-sun50i-a64": RealImage(
        "arm-trusted-firmware", "arm64", "trixie", r"usr/lib/arm-trusted-firmware/sun50i_a64/bl31\.bin"
    ),
}
# Read far enough to say why not.
UNSUPPORTED = ("u-boot-arm32", "u-boot-mips64", "u-boot-ppc")
IMAGES = SMALL | MORE | LIBRARIES | MODULES | LARGE | INSTALLED
