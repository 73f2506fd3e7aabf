"""The registers of amd64, in gdb's order (features/i386 of gdb), and system registers with the names of QEMU's."""

from typing import Final

from kinst.runtime.debugger.register_table import Feature, Register, RegisterTable, vector_types

_GENERAL: Final = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)))
_POINTERS: Final = {"rbp": "data_ptr", "rsp": "data_ptr"}
_SEGMENTS: Final = ("cs", "ss", "ds", "es", "fs", "gs")
# Of the x87 unit, as gdb names them and as the engine does: what it does not keep (the last instruction's place and
# operand) is not there, and reads as 0.
_X87: Final = {
    "fctrl": "fpcw", "fstat": "fpsw", "ftag": "fptag", "fiseg": "", "fioff": "", "foseg": "", "fooff": "", "fop": "",
}  # fmt: skip
_VECTORS: Final = vector_types(
    "vec128",
    (
        ("v4_float", "v4f", "ieee_single", 4),
        ("v2_double", "v2d", "ieee_double", 2),
        ("v16_int8", "v16i8", "int8", 16),
        ("v8_int16", "v8i16", "int16", 8),
        ("v4_int32", "v4i32", "int32", 4),
        ("v2_int64", "v2i64", "int64", 2),
    ),
)
_SYSTEM: Final = {
    "cr0": "cr0", "cr2": "cr2", "cr3": "cr3", "cr4": "cr4", "cr8": "cr8", "efer": "msr:0xc0000080",
    "star": "msr:0xc0000081", "lstar": "msr:0xc0000082", "cstar": "msr:0xc0000083", "sfmask": "msr:0xc0000084",
    "k_gs_base": "msr:0xc0000102",
    "gdt_base": "gdtr.base", "idt_base": "idtr.base", "tr_base": "tr.base",
}  # fmt: skip

REGISTERS: Final = RegisterTable(
    "i386:x86-64",
    (
        Feature(
            "org.gnu.gdb.i386.core",
            (
                *(Register(name, name, type=_POINTERS.get(name, "int64")) for name in _GENERAL),
                Register("rip", "rip", type="code_ptr"),
                Register("eflags", "rflags", 32, "i386_eflags"),
                *(Register(name, name, 32, "int32") for name in _SEGMENTS),
                *(Register(f"st{number}", f"st{number}", 80, "i387_ext") for number in range(8)),
                *(Register(name, source, 32, "int32", "float") for name, source in _X87.items()),
            ),
            '    <flags id="i386_eflags" size="4">'
            + "".join(
                f'<field name="{name}" start="{bit}" end="{bit}"/>'
                for name, bit in {
                    "CF": 0, "": 1, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "TF": 8, "IF": 9, "DF": 10, "OF": 11, "NT": 14,
                    "RF": 16, "VM": 17, "AC": 18, "VIF": 19, "VIP": 20, "ID": 21,
                }.items()
            )
            + "</flags>",
        ),
        Feature(
            "org.gnu.gdb.i386.sse",
            (
                *(Register(f"xmm{number}", f"xmm{number}", 128, "vec128") for number in range(16)),
                Register("mxcsr", "mxcsr", 32, "int32", "vector"),
            ),
            _VECTORS,
        ),
        Feature(
            "org.gnu.gdb.i386.segments",
            (Register("fs_base", "fs_base", type="int64"), Register("gs_base", "gs_base", type="int64")),
        ),
    ),
    (
        Feature(
            "org.kinst.amd64.system",
            tuple(Register(name, source, group="system") for name, source in _SYSTEM.items()),
        ),
    ),
    "rip",
)  # fmt: skip
