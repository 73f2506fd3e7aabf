"""The registers of arm64, in gdb's order (features/aarch64-core.xml, aarch64-fpu.xml), and its system registers."""

from typing import Final

from kinst.runtime.debugger.register_table import Feature, Register, RegisterTable, vector_types
from kinst.targets.arch.arm64 import ARM64

_VECTORS: Final = vector_types(
    "aarch64v",
    (
        ("d", "v2d", "ieee_double", 2),
        ("s", "v4f", "ieee_single", 4),
        ("q", "v1q", "uint128", 1),
        ("u64", "v2u", "uint64", 2),
        ("u32", "v4u", "uint32", 4),
        ("u16", "v8u", "uint16", 8),
        ("u8", "v16u", "uint8", 16),
    ),
)

_LACKING: Final = {"ttbr1_el2"}  # FEAT_VHE, which the engine's CPU does not have

REGISTERS: Final = RegisterTable(
    "aarch64",
    (
        Feature(
            "org.gnu.gdb.aarch64.core",
            (
                *(Register(f"x{number}", f"x{number}", type="int") for number in range(31)),
                Register("sp", "sp", type="data_ptr"),
                Register("pc", "pc", type="code_ptr"),
                Register("cpsr", "pstate", 32),
            ),
        ),
        Feature(
            "org.gnu.gdb.aarch64.fpu",
            (
                *(Register(f"v{number}", f"v{number}", 128, "aarch64v") for number in range(32)),
                Register("fpsr", "fpsr", 32, "int", "float"),
                Register("fpcr", "fpcr", 32, "int", "float"),
            ),
            _VECTORS,
        ),
    ),
    (
        Feature(
            "org.kinst.arm64.system",
            tuple(
                Register(name.upper(), name, group="system")
                for name in ARM64.engine.system_registers
                if name not in _LACKING
            ),
        ),
    ),
    "pc",
)
