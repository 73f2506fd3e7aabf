"""riscv64: which bits of a CPU's state in the emulator are the guest's. Offsets: `CPURISCVState` of Unicorn 2.1."""

from typing import Final

from kinst.targets.arch.state_layout import Field, Getter, StateLayout, words

_LOW: Final = 0xFFFF_FFFF
_INTERRUPTS: Final = 0xFFF


def _agrees(_get: Getter) -> str | None:
    return None


RISCV64_STATE: Final = StateLayout(
    size=1528,
    agrees=_agrees,
    fields=(
        Field("x", 8, 8, count=31),
        Field("f", 256, 8, count=32),
        *words("pc load_res load_val", 512),
        Field("frm", 536, 8, 7),
        *words("badaddr guest_phys_fault_addr", 544),
        Field("priv", 592, 8, values=(0, 1, 3)),  # U, S and M: the number of a table of the MMU
        Field("mstatus", 624, 8, 0x8000_0000_007F_FFFF),
        Field("mip", 632, 8, _INTERRUPTS),
        Field("miclaim", 640, 4, _INTERRUPTS),
        Field("mie", 648, 8, _INTERRUPTS),
        Field("mideleg", 656, 8, _INTERRUPTS),
        *words("satp sbadaddr mbadaddr", 672),
        Field("medeleg", 696, 8, _LOW),
        *words("stvec sepc scause mtvec mepc mcause mtval", 704),
        *words("scounteren mcounteren sscratch mscratch", 952),
        Field("pmp.address", 1008, 8, count=16, stride=16),
        Field("pmp.configuration", 1016, 1, count=16, stride=16),
        Field("pmp.range", 1264, 8, count=32),
        Field("pmp.rules", 1520, 4, values=range(17)),
    ),
)
