"""arm64: which bits of a CPU's state in the emulator are the guest's. Offsets: `struct CPUARMState` of Unicorn 2.1."""

from typing import Final

from kinst.targets.arch.state_layout import Field, Getter, StateLayout, float_status, words

_LOW: Final = 0xFFFF_FFFF
_AARCH64: Final = 1 << 31  # of hflags
_TABLE: Final = 24  # of hflags: the number of the MMU's table, which nothing checks against how many there are
# Exception level -> the tables for it (ARMMMUIdx in target/arm/cpu.h): not secure and secure, without and with PAN.
_TABLES: Final = {0: {0, 7}, 1: {2, 4, 8, 9}, 2: {6}, 3: {10}}


def _agrees(get: Getter) -> str | None:
    mode, level = get("hflags"), get("pstate") >> 2 & 3
    if mode >> _TABLE & 0xF not in _TABLES[level] or not mode & _AARCH64:
        return f"the mode {mode:#x} is not that of exception level {level}"
    return None


ARM64_STATE: Final = StateLayout(
    size=12600,
    agrees=_agrees,
    fields=(
        Field("x", 64, 8, count=32),
        Field("pc", 320, 8),
        Field("pstate", 328, 4, 0x00F0_000D),  # PAN, UAO, SS, IL; EL and SP
        Field("hflags", 336, 4, 0x7FF0_7003),
        Field("uncached_cpsr", 340, 4),
        Field("spsr", 344, 4),
        Field("banked_spsr", 352, 8, _LOW, count=8),
        Field("cf", 520, 4, values=(0, 1)),
        *words("vf nf zf", 524, 4),
        Field("daif", 560, 8, 0x3C0),
        Field("elr", 568, 8, count=4),
        Field("sp", 600, 8, count=4),
        Field("csselr", 640, 8, 0xF, count=4),  # an index
        Field("sctlr", 672, 8, count=4),
        Field("cpacr", 704, 8, _LOW),
        Field("cptr", 712, 8, _LOW, count=4),
        Field("ttbr", 768, 8, count=9),  # ttbr0, ttbr1 and vttbr_el2
        Field("tcr", 840, 8, count=5, stride=16),  # tcr and vtcr_el2
        Field("dacr", 928, 8, count=2),
        Field("hcr", 952, 8, (1 << 34) - 1),
        Field("scr", 960, 8, 0xFFFF),
        Field("ifsr", 968, 8, count=2),
        Field("esr", 984, 8, count=4),
        Field("far", 1048, 8, count=4),
        *words("hpfar hstr", 1080),
        Field("par", 1096, 8, count=4),
        Field("pmcr", 1136, 8, 0x39),  # the rest says how many counters there are
        *(Field(name, 1144 + 8 * at, 8, _LOW) for at, name in enumerate(["pmcnten", "pmovs", "pmuserenr"])),
        Field("pmselr", 1168, 8, 0x1F),
        Field("pminten", 1176, 8, _LOW),
        Field("mair", 1184, 8, count=4),
        Field("vbar", 1216, 8, count=4),
        Field("contextidr", 1264, 8, count=4),
        Field("tpidr", 1296, 8, count=4),
        *words("tpidrro cntfrq cntkctl", 1352),
        Field("cnthctl", 1376, 4),
        Field("cntvoff", 1384, 8),
        Field("cval", 1392, 8, count=5, stride=16),
        Field("ctl", 1400, 8, 7, count=5, stride=16),
        Field("dbgbvr", 1512, 8, count=16),
        Field("dbgbcr", 1640, 8, 0xFFFF_FFFE, count=16),  # one that is enabled has a pointer of the process
        Field("dbgwvr", 1768, 8, count=16),
        Field("dbgwcr", 1896, 8, 0xFFFF_FFFE, count=16),
        Field("mdscr", 2024, 8, _LOW),
        Field("oslsr", 2032, 8, 2),
        *(Field(name, 2040 + 8 * at, 8, _LOW) for at, name in enumerate(["mdcr_el2", "mdcr_el3"])),
        *words("ccnt ccnt_delta", 2056),
        Field("pmevcntr", 2072, 8, count=62),
        Field("pmevtyper", 2568, 8, _LOW, count=31),
        Field("pmccfiltr", 2816, 8, _LOW),
        *words("vpidr vmpidr", 2824),
        *words("exception.syndrome exception.fsr", 3024, 4),
        Field("exception.vaddress", 3032, 8),
        Field("exception.target", 3040, 4, values=range(4)),
        *(Field("v", 3088 + 256 * at, 8, count=2) for at in range(32)),
        Field("qc", 11856, 4, count=4),
        Field("vec_len", 11872, 4, 7),
        Field("vec_stride", 11876, 4, 3),
        Field("fpscr", 11884, 4),
        Field("fpexc", 11912, 4),
        *float_status("fp_status", 11976),
        *float_status("fp_status_f16", 11984),
        *float_status("standard_fp_status", 11992),
        *words("exclusive_addr exclusive_val exclusive_high", 12032),
    ),
)
