"""EL3 and the secure state, beside QEMU's: who takes what, and what each level sees of the others."""

from pathlib import Path

import pytest

from tests.runtime.live.qemus import needs
from tests.runtime.machine.secure_programs import here, to_level, under_qemu, written

HOLE = 0x0F80_0000  # neither RAM nor a device, in either machine
NS, IRQ, FIQ, EA, SMD, HCE, RW = 1, 2, 4, 8, 1 << 7, 1 << 8, 1 << 10
EL0, EL1, EL2 = 0x3C0, 0x3C5, 0x3C9
LOAD = f"ldr x1, ={HOLE}; ldr x0, [x1]"

PROGRAMS = {
    "smc at EL3": "smc #5",
    "smc of EL1": f"{to_level(EL1, NS | RW)}; smc #0x123",
    "smc of EL2": f"{to_level(EL2, NS | RW)}; smc #0x123",
    "smc of secure EL1": f"{to_level(EL1, RW)}; smc #1",
    "smc that EL3 disables": f"{to_level(EL1, NS | RW | SMD)}; smc #1",
    "hvc of EL1": f"{to_level(EL1, NS | RW | HCE)}; hvc #7",
    "hvc that EL3 disables": f"{to_level(EL1, NS | RW)}; hvc #7",
    "svc of EL0": f"{to_level(EL0, NS | RW)}; svc #3",
    "svc of secure EL0": f"{to_level(EL0, RW)}; svc #3",
    "brk at EL3": "brk #9",
    "undefined at EL3": ".inst 0",
    "undefined at secure EL1": f"{to_level(EL1, RW)}; .inst 0",
    "an abort at EL3": LOAD,
    "an abort at EL1": f"{to_level(EL1, NS | RW)}; {LOAD}",
    "EL3's register at EL1": f"{to_level(EL1, NS | RW)}; mrs x0, scr_el3",
    "EL3's register at EL2": f"{to_level(EL2, NS | RW)}; mrs x0, scr_el3",
    "debug registers that EL3 traps": f"mov x0, #0x200; msr mdcr_el3, x0; {to_level(EL1, NS | RW)}; mrs x0, mdscr_el1",
    "levels": "mrs x0, currentel; bl show; mrs x0, id_aa64pfr0_el1; bl show; mrs x0, scr_el3; bl show",
    "stacks": f"ldr x0, =0x1110; msr sp_el0, x0; ldr x0, =0x2220; msr sp_el1, x0; ldr x0, =0x3330; msr sp_el2, x0; "
    f"{to_level(EL2, NS | RW)}; mov x0, sp; bl show; smc #0",
    "the secure timer": "msr cntps_cval_el1, xzr; mrs x0, cntps_cval_el1; bl show; "
    "mov x0, #3; msr cntps_ctl_el1, x0; mrs x0, cntps_ctl_el1; bl show",
    "the secure timer at EL2": f"{to_level(EL2, NS | RW)}; mrs x0, cntps_ctl_el1",
    "the secure timer at secure EL1": f"{to_level(EL1, RW | 1 << 11)}; mrs x0, cntps_ctl_el1; bl show",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_levels_are_those_of_qemu(name: str, tmp_path: Path) -> None:
    needs("qemu-system-aarch64")
    image = written(tmp_path, PROGRAMS[name])
    assert here(image) == under_qemu(image)


def test_external_aborts_go_to_el3_if_it_wants_them(tmp_path: Path) -> None:
    """SCR_EL3.EA (DDI 0487 D1.3.5.4), which QEMU does not have for synchronous ones."""
    vector, esr, *_, address = here(written(tmp_path, f"{to_level(EL1, NS | RW | EA)}; {LOAD}")).split()[:5]
    assert (int(vector, 16), int(esr, 16), int(address, 16)) == (0x403, 0x9200_0010, HOLE)


def test_implementation_defined_registers_read_as_written(tmp_path: Path) -> None:
    """At EL1 and above; at EL0 they are undefined."""
    name = "s3_1_c15_c7_5"
    access = f"mrs x0, {name}; bl show; mov x0, #0x77; msr {name}, x0; mrs x0, {name}; bl show"
    program = f"{access}; {to_level(EL0, NS | RW)}; mrs x0, {name}"
    assert here(written(tmp_path, program)).split()[:4] == [f"{n:016x}" for n in (0, 0x77, 0x401, 1 << 25)]
