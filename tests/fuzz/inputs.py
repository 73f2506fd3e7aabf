"""Files and expressions beside the image: what --input types, what --prompt waits for, and the device tree of --dtb."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.cli import run as kinst_run
from kinst.runtime.machine.devices.fdt import Node, flatten
from tests.fuzz.bytes_changed import Damage, damages
from tests.fuzz.kind import Kind, command
from tests.runtime.input.echo_guest import echo
from tests.writers.elf import EM_AARCH64, EM_RISCV, Part, Symbol, elf64

_LIMITS: Final = ("--clock", "icount", "--timeout", "45ms", "--wall-timeout", "5s")

# -- lines and prompts ------------------------------------------------------------------------------------------------

_LETTERS: Final = st.text(alphabet="ab>$ .*+?()[]{}|^\\\r\n\0\x01\x1b\x9b:=-1,é\u202e", max_size=24)
_PROMPTS: Final = st.one_of(
    st.none(),
    _LETTERS,
    st.sampled_from(
        ("", "^", "(a*)*$", "(?s).*", "[>a-z]*$", "\\1", "(?=a)", "a{1000}{1000}", "(" * 2000, "\\p{Greek}")
    ),
)
_LINES: Final = st.one_of(
    st.binary(max_size=60),
    _LETTERS.map(lambda text: text.encode()),
    st.sampled_from((b"", b"\n" * 5000, b"a" * 100_000, b"\0", b"\r\r\n\r", b"abc\nx")),
)


@cache
def _echoes(*, polls: bool) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        return echo(Path(name), polls=polls).read_bytes()


def _typed(drawn: tuple[bytes, str | None, bool], folder: Path) -> None:
    lines, prompt, polls = drawn
    image, script = folder / "image.elf", folder / "lines"
    image.write_bytes(_echoes(polls=polls))
    script.write_bytes(lines)
    words = () if prompt is None else ("--prompt", prompt)
    command(kinst_run, image, *_LIMITS, "--console", folder / "console", "--input", script, *words)


# -- device trees -----------------------------------------------------------------------------------------------------

_TREES: Final = (EM_AARCH64, EM_RISCV)
_WAIT: Final = {EM_AARCH64: bytes.fromhex("7f2003d5ffffff17"), EM_RISCV: bytes.fromhex("73005010f5bf")}  # wfi in a loop
_BASES: Final = {EM_AARCH64: 0x4020_0000, EM_RISCV: 0x8000_0000}


@cache
def _tree() -> bytes:
    """All that the machines replace in a tree, and things that they do not know."""
    root = Node("", {"#address-cells": 2, "#size-cells": 2, "compatible": b"linux,dummy-virt\0"})
    root.add("memory@40000000", {"device_type": "memory", "reg": bytes(16)})
    cpus = root.add("cpus", {"#address-cells": 1, "#size-cells": 0})
    for number in range(2):
        cpus.add(f"cpu@{number}", {"device_type": "cpu", "reg": number, "enable-method": "psci"})
    cpus.add("cpu-map", {}).add("socket0", {}).add("core0", {"cpu": 1})
    root.add("chosen", {"bootargs": "console=ttyAMA0", "stdout-path": "/pl011@9000000", "linux,initrd-start": 1})
    root.add("pl011@9000000", {"compatible": b"arm,pl011\0arm,primecell\0", "reg": bytes(16), "interrupts": bytes(12)})
    root.add("virtio_mmio@a000000", {"compatible": "virtio,mmio", "reg": bytes(16), "dma-coherent": b""})
    return flatten(root)


def _given(damage: Damage, folder: Path) -> None:
    machine = _TREES[damage.base]
    base, text = _BASES[machine], _WAIT[machine]
    image, tree = folder / "image.elf", folder / "given.dtb"
    image.write_bytes(elf64(machine, base, [Part(".text", base, text, 5)], [Symbol("start", base, len(text))]))
    data = _tree()
    tree.write_bytes(damage.of(data, [range(len(data))]))
    limits = ("--clock", "icount", "--timeout", "100us", "--cpus", "2", "--append", "quiet")
    command(kinst_run, image, *limits, "--console", folder / "console", "--dtb", tree)


INPUT: Final = Kind("input", st.tuples(_LINES, _PROMPTS, st.booleans()), _typed)
TREES: Final = Kind("trees", damages(len(_TREES)), _given)
