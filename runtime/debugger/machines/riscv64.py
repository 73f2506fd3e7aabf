"""The registers of riscv64, in gdb's order (features/riscv/64bit-*.xml), and the control and status registers that the
engine has."""

from typing import Final

from kinst.runtime.debugger.register_table import Feature, Register, RegisterTable

_GENERAL: Final = (
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
    "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
)  # fmt: skip
_TYPES: Final = {"ra": "code_ptr", "sp": "data_ptr", "gp": "data_ptr", "tp": "data_ptr", "fp": "data_ptr"}
_FLOAT: Final = (
    *(f"ft{number}" for number in range(8)), "fs0", "fs1", *(f"fa{number}" for number in range(8)),
    *(f"fs{number}" for number in range(2, 12)), *(f"ft{number}" for number in range(8, 12)),
)  # fmt: skip
_CONTROL: Final = (
    "mstatus", "misa", "medeleg", "mideleg", "mie", "mtvec", "mcounteren", "mscratch", "mepc", "mcause", "mtval", "mip",
    "mhartid", "sstatus", "sie", "stvec", "scounteren", "sscratch", "sepc", "scause", "stval", "sip", "satp",
)  # fmt: skip

REGISTERS: Final = RegisterTable(
    "riscv:rv64",
    (
        Feature(
            "org.gnu.gdb.riscv.cpu",
            (
                *(Register(name, f"x{number}", type=_TYPES.get(name, "int64")) for number, name in enumerate(_GENERAL)),
                Register("pc", "pc", type="code_ptr"),
            ),
        ),
        Feature(
            "org.gnu.gdb.riscv.fpu",
            tuple(Register(name, f"f{number}", type="riscv_double") for number, name in enumerate(_FLOAT)),
            '    <union id="riscv_double"><field name="float" type="ieee_single"/>'
            '<field name="double" type="ieee_double"/></union>',
        ),
    ),
    (
        Feature("org.gnu.gdb.riscv.virtual", (Register("priv", "priv", type="int", group="system"),)),
        Feature(
            "org.gnu.gdb.riscv.csr",
            # Without fflags, frm and fcsr: while the floating-point unit is off, the engine gives no value for them.
            tuple(Register(name, name, group="system") for name in _CONTROL),
        ),
    ),
    "pc",
    "priv",
)
