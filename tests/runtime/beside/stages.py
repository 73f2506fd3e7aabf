"""Images for virt-arm64: firmware that copies what was loaded, or goes straight there, and two that it starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinst.rewriter.assemble import assemble
from kinst.targets.arch.registry import arch_by_name
from tests.writers.elf import EM_AARCH64, Part, Symbol, elf64

FIRMWARE, NEXT = 0x4008_0000, 0x4100_0000
EARLY: Final = FIRMWARE + 0x1000  # a page of the firmware that was executed
ELSEWHERE: Final = 0x4200_0000
SIZE: Final = 0x400  # bytes that are copied

# Prints what the words of the next stage add up to as a letter, before anything of it was executed.
_FIRMWARE: Final = """
    movz x19, #{loaded}, lsl #16
    movz x20, #{high}, lsl #16
    movk x20, #{low}
    mov x27, #0x09000000
    bl {early}
    bl {sum}
    bl {copy}
    br x20
"""
_SUM: Final = f"""
    mov x2, x19
    add x3, x19, #{SIZE}
    mov x0, #0
more:
    ldr x1, [x2], #8
    add x0, x1, x0, lsr #7
    cmp x2, x3
    b.lo more
    and w0, w0, #15
    add w0, w0, #97
    str w0, [x27]
    ret
"""
_COPY: Final = f"""
    mov x2, x19
    mov x4, x20
    add x3, x19, #{SIZE}
    cmp x2, x4
    b.eq done
more:
    ldr x1, [x2], #8
    str x1, [x4], #8
    cmp x2, x3
    b.lo more
done:
    dsb sy
    ic iallu
    isb
    ret
"""
_NEXT: Final = """
    mov x27, #0x09000000
    mov w0, #{letter}
    bl {put}
    mov w0, #33
    bl {put}
    bl {leave}
    b {_start}
"""
_PUT: Final = """
    str w0, [x27]
    add x9, x0, #1
    eor x10, x9, x0
    orr x11, x10, x9
    ret
"""
_OFF: Final = """
    movz w0, #0x0008
    movk w0, #0x8400, lsl #16
    hvc #0
    ret
"""
_GO_ON: Final = """
    movz x12, #{following}, lsl #16
    br x12
"""


@dataclass(frozen=True, slots=True)
class Function:
    """A function: what is between braces in its text is the address of another one, or a value."""

    name: str
    text: str
    address: int | None = None  # None: behind the one before


def image(path: Path, start: int, functions: list[Function], **values: int) -> Path:
    """An ELF file with them."""
    arch, places, codes = arch_by_name("arm64"), dict[str, int](), dict[str, bytes]()
    for _ in range(2):  # the first time to learn how long they are
        at = start
        for one in functions:
            at = places[one.name] = at if one.address is None else one.address
            texts = {name: f"#{value:#x}" for name, value in (dict.fromkeys(_names(functions), start) | places).items()}
            codes[one.name] = assemble(arch, one.text.format(**texts, **values), at)
            at += len(codes[one.name])
    size = max(places[name] + len(code) for name, code in codes.items()) - start
    content = bytearray(size)
    for name, code in codes.items():
        content[places[name] - start : places[name] - start + len(code)] = code
    symbols = [Symbol(name, places[name], len(code)) for name, code in codes.items()]
    path.write_bytes(elf64(EM_AARCH64, start, [Part(".text", start, bytes(content), 5)], symbols))
    return path


def _names(functions: list[Function]) -> list[str]:
    return [one.name for one in functions]


def firmware(folder: Path, target: int) -> Path:
    """Firmware that starts what was loaded at NEXT, once it is at `target`."""
    functions = [
        Function("_start", _FIRMWARE), Function("sum", _SUM), Function("copy", _COPY), Function("early", "ret", EARLY)
    ]  # fmt: skip
    values = {"loaded": NEXT >> 16, "high": target >> 16, "low": target & 0xFFFF}
    return image(folder / "firmware.elf", FIRMWARE, functions, **values)


def next_stage(folder: Path, *, name: str = "next", start: int = NEXT, following: int | None = None) -> Path:
    """What prints its first letter and an exclamation mark, and switches the machine off or goes to `following`."""
    leave = _OFF if following is None else _GO_ON
    functions = [Function("_start", _NEXT), Function("put", _PUT), Function("leave", leave)]
    values = {"letter": ord(name[0]), "following": (following or 0) >> 16}
    return image(folder / f"{name}.elf", start, functions, **values)
