"""Xen for arm64 under QEMU, which maps itself at EL2: alone up to its panic, and with Linux as its first domain."""

import json
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from kinst.runtime.machine.devices.fdt import Node, flatten
from kinst.runtime.machine.devices.fdt_reader import unflatten
from tests.commands.in_process import kinst_run
from tests.images import real_image
from tests.linux_programs import flat, initial_file_system
from tests.runtime.live.qemus import needs

QEMU = "qemu-system-aarch64 -M virt,virtualization=on,gic-version=2 -cpu cortex-a57 -m 1G"
NO_DOM0 = "Could not set up DOM0 guest OS"
KERNEL, INITRD = 0x5000_0000, 0x5800_0000  # where its device tree says that they are
INIT = "#!/bin/sh\necho kinst: user space of dom0\n/bin/busybox poweroff -f\n"


def counts(image: str, on: str, *more: object, until: str) -> Mapping[str, int]:
    words = ("-q", "--format", "json", "--on", on, "--until", until, "--wall-timeout", "200s", *more)
    done = kinst_run(*words, "-n", "fbt:::entry { @[probefunc] = count(); }", real_image(image))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)["dtrace"]
    assert document["end"]["reason"] == "until", document["end"]
    return {one["keys"][0]: one["value"] for one in document["aggregations"][0]["aggregation-data"]}


@pytest.mark.long
@pytest.mark.parametrize("image", ["xen-arm64", "xen-4.17-arm64"])
@pytest.mark.parametrize("cpus", [1, 4])
def test_its_functions_are_counted_up_to_its_panic(image: str, cpus: int) -> None:
    """From before its MMU is on, and on each CPU."""
    needs("qemu-system-aarch64")
    found = counts(image, f"{QEMU} -smp {cpus}", until=NO_DOM0)
    assert {found[name] for name in ("real_start", "start_xen", "setup_pagetables")} == {1}
    assert found.get("start_secondary", 0) == cpus - 1


def with_modules(tree: bytes, sizes: tuple[int, int]) -> bytes:
    """The device tree of the board, with a kernel and its file system for Xen's first domain."""
    found = unflatten(tree)
    chosen = next(one for one in found.root.children if one.name == "chosen")
    chosen.properties.pop("kaslr-seed", None)
    chosen.properties |= {
        "#address-cells": struct.pack(">I", 2),
        "#size-cells": struct.pack(">I", 2),
        "xen,xen-bootargs": b"dom0_mem=256M\0",
        "xen,dom0-bootargs": b"console=hvc0 panic=-1\0",
    }
    for kind, start, size in zip((b"kernel", b"ramdisk"), (KERNEL, INITRD), sizes, strict=True):
        node = Node(f"module@{start:x}")
        node.properties |= {
            "compatible": b"multiboot," + kind + b"\0multiboot,module\0",
            "reg": struct.pack(">2Q", start, size),
        }
        chosen.children.append(node)
    return flatten(found.root, 0, 0, found.reservations)


@pytest.mark.long
def test_linux_runs_as_its_first_domain(tmp_path: Path) -> None:
    """What it maps for its guests is none of ours."""
    needs("qemu-system-aarch64")
    out, initrd = tmp_path / "board.dtb", tmp_path / "initrd.cpio"
    subprocess.run(f"{QEMU},dumpdtb={out} -nographic".replace(" -cpu cortex-a57 -m 1G", "").split(), check=True)
    initrd.write_bytes(initial_file_system("arm64", INIT))
    kernel = flat(real_image("linux-6.12-arm64"), tmp_path / "Image")
    out.write_bytes(with_modules(out.read_bytes(), (kernel.stat().st_size, initrd.stat().st_size)))
    loads = ("--load", f"{kernel}@{KERNEL:#x}", "--load", f"{initrd}@{INITRD:#x}")
    found = counts("xen-arm64", QEMU, "--dtb", out, *loads, until="kinst: user space of dom0")
    assert found["construct_dom0"] == 1
    assert found["enter_hypervisor_from_guest"] > 1000
