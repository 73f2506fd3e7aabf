"""Programs that begin at EL3 -> what they print under QEMU, which has `-M virt,secure=on`, and in our machine.

A program prints registers by `bl show` (x0 in 16 digits) and ends with a full stop. Vectors of all levels print their
offset and level, ESR, ELR (from CODE), SPSR and FAR, and end it.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

from kinst.rewriter.assemble import assemble
from kinst.runtime.machine.boards.registry import board_of
from kinst.runtime.machine.configuration import ClockKind, Configuration, End
from kinst.runtime.machine.hooks import MachineHooks
from kinst.runtime.machine.loading.loader import load_image
from kinst.runtime.machine.system import System
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.image import open_image
from kinst.targets.machines.machine import StartFacts
from kinst.targets.machines.registry import machine_facts
from tests.writers.elf import EM_AARCH64, Part, elf64

CODE, VECTORS, STACK = 0x4020_0000, 0x4021_0000, 0x4030_0000
END = "mov w16, #46; str w16, [x15]; stop: b stop"  # a full stop
_QEMU = ("qemu-system-aarch64", "-M", "virt,secure=on,virtualization=on,gic-version=3", "-cpu", "cortex-a57")
_SHOW = (
    "show: mov x17, #60; digit: lsr x16, x0, x17; and x16, x16, #15; add x16, x16, #48; cmp x16, #58; b.lt small; "
    "add x16, x16, #39; small: str w16, [x15]; subs x17, x17, #4; b.ge digit; mov w16, #10; str w16, [x15]; ret"
)
_START = (
    f"ldr x15, =0x9000000; ldr x0, ={VECTORS}; msr vbar_el3, x0; add x0, x0, #0x800; msr vbar_el2, x0; "
    f"add x0, x0, #0x800; msr vbar_el1, x0; ldr x0, ={STACK}; mov sp, x0; msr cptr_el3, xzr; cmp xzr, xzr"
)


def _vectors() -> bytes:
    """Those of EL3, EL2 and EL1: each tells which it is, and all go on behind them."""
    content = bytearray()
    for number in range(48):
        level = 3 - number // 16
        report = f"mov x0, #{number % 16 * 0x80 + level}; b {VECTORS + 0x1800 + level * 0x200}"
        content += assemble(ARM64, report, VECTORS + 0x80 * number).ljust(0x80, b"\0")
    for level in range(4):
        shown: tuple[str, ...] = (f"mrs x0, esr_el{level}", f"mrs x0, elr_el{level}; ldr x1, ={CODE}; sub x0, x0, x1")
        shown += (f"mrs x0, spsr_el{level}", f"mrs x0, far_el{level}")
        text = f"bl show; {'; bl show; '.join(shown)}; bl show; {END}; {_SHOW}" if level else "nop"
        content += assemble(ARM64, text, VECTORS + 0x1800 + level * 0x200).ljust(0x200, b"\0")
    return bytes(content)


def to_level(pstate: int, control: int, then: str = "lower") -> str:
    """Leave EL3 for the label `then` with this PSTATE and SCR_EL3."""
    return (
        f"ldr x0, ={control}; msr scr_el3, x0; ldr x0, ={pstate}; msr spsr_el3, x0; ldr x0, =0x80000000; "
        f"msr hcr_el2, x0; adr x0, {then}; msr elr_el3, x0; eret; {then}: nop"
    )


def written(folder: Path, program: str) -> Path:
    """The program as an ELF file."""
    path = folder / "secure.elf"
    code = assemble(ARM64, f"{_START}; {program}; {END}; {_SHOW}", CODE)
    parts = [Part(".text", CODE, code, 7), Part(".vectors", VECTORS, _vectors(), 7)]
    path.write_bytes(elf64(EM_AARCH64, CODE, parts))
    return path


def under_qemu(image: Path) -> str:
    """What QEMU prints up to the full stop."""
    words = (*_QEMU, "-kernel", str(image), "-m", "256", "-display", "none", "-serial", "stdio", "-monitor", "none")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as qemu:
        assert qemu.stdout is not None
        output = bytearray()
        while not output.endswith(b"."):
            byte = qemu.stdout.read(1)
            assert byte, output
            output += byte
        qemu.kill()
    return output.decode()


def here(image: Path) -> str:
    """What it prints in our machine."""
    facts = replace(machine_facts("virt-gicv3-arm64"), board="plain-arm64", start=StartFacts("EL3", {}))
    system = System(facts, board_of(facts.board), Configuration(clock=ClockKind.ICOUNT))
    system.board.start(load_image(open_image(image), facts, system.memory))
    output = bytearray()

    def console(data: bytes) -> None:
        output.extend(data)
        if output.endswith(b"."):
            system.finish(End.STOPPED)

    assert system.run(10_000_000_000, hooks=MachineHooks(console=console)) is End.STOPPED, output
    return output.decode()
