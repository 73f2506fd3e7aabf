"""Guests of random code: instructions nobody meant, with addresses of memory and devices in their registers."""

from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from kinst.runtime.cli import run as kinst_run
from tests.fuzz.kind import Finding, Kind, command
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

_BASES: Final = {EM_X86_64: 0x20_0000, EM_AARCH64: 0x4020_0000, EM_RISCV: 0x8000_0000}
_DEVICES: Final = {
    EM_X86_64: (0xFEE0_0000, 0xFEE0_0300, 0xD000_0000, 0x7FF_FFFC, 0x1_0000_0000, 0x30_0000, 1 << 63, (1 << 64) - 8),
    EM_AARCH64: (0x800_0000, 0x801_0000, 0x900_0000, 0xA00_0000, 0x400_0000, 0x47FF_FFFC, 0x4030_0000, (1 << 64) - 8),
    EM_RISCV: (0x1000_0000, 0x200_0000, 0xC00_0000, 0x1000_1000, 0x2000_0000, 0x87FF_FFFC, 0x8030_0000, (1 << 64) - 8),
}
# What is worth more than chance: whole opcodes that change modes, tables and tasks.
_AMD64: Final = (
    *(
        "0f22d8",
        "0f22c0",
        "0f22e0",
        "0f30",
        "0f32",
        "48cf",
        "48cb",
        "0f01 17",
        "0f01 1f",
        "8ed8",
        "8ed0",
        "0f00d8",
        "0f05",
    ),
    *(
        "f3aa",
        "f348a5",
        "f00fc101",
        "f00fb101",
        "f0480fc709",
        "0fae01",
        "0fae09",
        "cd80",
        "cc",
        "fb",
        "9d",
        "0f07",
        "0fc7f0",
    ),
    *(
        "ee",
        "ed",
        "6d",
        "f36f",
        "0f0b",
        "f4",
        "0f0107",
        "0f23c0",
        "0f01d1",
        "0f31",
        "0fa2",
        "c8ffff1f",
        "ff18",
        "ff28",
        "0f3f",
    ),
)
_ARM64: Final = (
    *(
        0xD518_2000,
        0xD518_2040,
        0xD518_1000,
        0xD518_C000,
        0xD518_4000,
        0xD518_4020,
        0xD69F_03E0,
        0xD400_0001,
        0xD400_0002,
    ),
    *(
        0xD503_207F,
        0x885F_7C20,
        0x8800_7C20,
        0xD508_871F,
        0xD50B_7421,
        0xD503_4FFF,
        0xD503_4FDF,
        0xC85F_7C20,
        0xD61F_0020,
    ),
    *(
        0xD400_0003,
        0xD420_0000,
        0xD538_0000,
        0xD53B_E040,
        0xD51B_E220,
        0xD51B_E320,
        0x6E20_1C20,
        0x3DC0_0020,
        0x3D80_0020,
    ),
)
_RISCV: Final = (
    *(
        0x1805_1073,
        0x3005_1073,
        0x3055_1073,
        0x3415_1073,
        0x3020_0073,
        0x1020_0073,
        0x73,
        0x10_0073,
        0x1050_0073,
        0x1200_0073,
    ),
    *(
        0x1005_A52F,
        0x0055_A52F,
        0x18A5_A52F,
        0x100F,
        0x3A05_1073,
        0x3B05_1073,
        0x1055_1073,
        0x3025_1073,
        0x3445_1073,
        0x3046_1073,
    ),
    *(0x0005_8067, 0x0005_B503, 0x00A5_B023, 0x0005_B507, 0x3010_1073, 0x7B20_0073, 0x1020_0073, 0x9002_9002),
)
_RANDOM: Final = st.binary(min_size=4, max_size=4)
_WORDS: Final = {
    EM_X86_64: st.one_of(st.sampled_from([bytes.fromhex(code) for code in _AMD64]), st.binary(min_size=1, max_size=6)),
    EM_AARCH64: st.one_of(_RANDOM, st.sampled_from(_ARM64).map(lambda word: word.to_bytes(4, "little"))),
    EM_RISCV: st.one_of(_RANDOM, st.sampled_from(_RISCV).map(lambda word: word.to_bytes(4, "little"))),
}


def _amd64(values: list[int]) -> bytes:
    """mov $value, %rax, %rcx, ... %rdi, not %rsp."""
    numbers = (0, 1, 2, 3, 5, 6, 7)
    return b"".join(
        bytes((0x48, 0xB8 + number)) + value.to_bytes(8, "little")
        for number, value in zip(numbers, values, strict=False)
    )


def _arm64(values: list[int]) -> bytes:
    """movz and movk of x0 to x7."""
    words = [
        (0xF280_0000 if part else 0xD280_0000) | part << 21 | (value >> 16 * part & 0xFFFF) << 5 | number
        for number, value in enumerate(values)
        for part in range(4)
    ]
    return b"".join(word.to_bytes(4, "little") for word in words)


def _riscv64(values: list[int]) -> bytes:
    """lui and addiw of a0 to a7, so 32 bits of each."""
    words = []
    for number, value in enumerate(values, 10):
        low = (value & 0xFFF) - ((value & 0x800) << 1)
        words += [
            (value - low) & 0xFFFF_F000 | number << 7 | 0x37,
            (low & 0xFFF) << 20 | number << 15 | number << 7 | 0x1B,
        ]
    return b"".join(word.to_bytes(4, "little") for word in words)


_SETTERS: Final = {EM_X86_64: _amd64, EM_AARCH64: _arm64, EM_RISCV: _riscv64}
_OPTIONS: Final = (
    (),
    ("--cpus", "2"),
    ("-qn", "kinst:::{ @ = count(); } END { clear(@); }"),
    ("-qn", "fbt:::{ trace(arg0); stack(); }"),
    (
        "-qFn",
        "fbt:::{ self->x = arg1; }",
        "-n",
        "kinst:::{ @[self->x] = count(); } profile-4999 { @[stack()] = count(); }",
    ),
)
Drawn = tuple[int, list[int], list[bytes], bool, int]


def _drawn(machine: int) -> st.SearchStrategy[Drawn]:
    values = st.one_of(st.sampled_from(_DEVICES[machine]), st.integers(0, (1 << 64) - 1), st.integers(0, 0xFFF))
    code = st.lists(_WORDS[machine], min_size=1, max_size=40)
    values_of = st.lists(values, min_size=7, max_size=7)
    return st.tuples(st.just(machine), values_of, code, st.booleans(), st.integers(0, len(_OPTIONS) - 1))


def _run(drawn: Drawn, folder: Path) -> None:
    """The code, over and over if `loops`; the run is over after little time of the machine, and says how."""
    machine, values, code, loops, options = drawn
    base = _BASES[machine]
    text = _SETTERS[machine](values) + b"".join(code)
    if loops:
        text = text * 20
    image = folder / "guest.elf"
    part = Part(".text", base, text, 7, size=len(text) + 64)
    image.write_bytes(elf64(machine, base, [part], [Symbol("start", base, len(text))]))
    limits = ("--clock", "icount", "--timeout", "300us", "--wall-timeout", "5s")
    result = command(
        kinst_run, image, *limits, "--console", folder / "console", "-o", folder / "output", *_OPTIONS[options]
    )
    if not result.stderr and not _OPTIONS[options] and result.exit_code:
        raise Finding("the run failed without a word")


CODE: Final = Kind("code", st.one_of(*map(_drawn, _BASES)), _run)
