"""A small amd64 kernel in memory, whose every instruction a test can name."""

from dataclasses import dataclass
from pathlib import Path

from kinst.rewriter.assemble import assemble
from kinst.rewriter.program import Program, open_program
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.image import open_image
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

TEXT = 0xFFFF_FFFF_8010_0000
LOAD = 0x10_0000
DATA = 0xFFFF_FFFF_8020_0000

# Each function begins at a multiple of 0x40; what follows its last instruction is padding.
FUNCTIONS = {
    # 0 endbr64, 4 push, 5 mov, 8 je +16, 10 xor, 12 pop, 13 ret, 14 jmp helper (a tail call)
    "vm_fault": (
        ".byte 0xf3, 0x0f, 0x1e, 0xfa; push %rbp; mov %rsp, %rbp; je tail; xor %eax, %eax; pop %rbp; ret; "
        "tail: jmp {helper}"
    ),
    # 0 sti: the next instruction is in its shadow; 1 ret
    "vm_fault_quick": "sti; ret",
    # 0 jmp helper.cold: the same function in C; 2 jmp *%rax; 4 jne vm_fault: a conditional tail call; 10 ud2
    "helper": "jmp {helper.cold}; jmp *%rax; jne {vm_fault}; ud2",
    "helper.cold": "nop; ret",
    "start": "int3; ret",
    "dtrace_foo": "push %rbp; ret",
    "spin": "pause; jmp {spin}",
}
STEP = 0x40


@dataclass(frozen=True)
class Small:
    """The file's bytes, and where its functions are."""

    data: bytes
    sizes: dict[str, int]

    def address(self, name: str) -> int:
        return TEXT + STEP * list(FUNCTIONS).index(name)

    def write(self, folder: Path, name: str = "small.elf") -> Path:
        path = folder / name
        path.write_bytes(self.data)
        return path


def small(*, spare_header: bool = True, extra: tuple[Symbol, ...] = (), functions: dict[str, str] = FUNCTIONS) -> Small:
    """The image; `extra` symbols beside its functions."""
    places = {name: hex(TEXT + STEP * row) for row, name in enumerate(functions)}
    text, sizes = b"", {}
    for name, code in functions.items():
        for other, place in places.items():
            code = code.replace("{" + other + "}", place)
        encoded = assemble(AMD64, code, TEXT + len(text))
        sizes[name] = len(encoded)
        text += encoded.ljust(STEP, b"\xcc")
    parts = [
        Part(".text", TEXT, text, 5, load_address=LOAD),
        Part(".data", DATA, bytes(range(64)), 6, size=0x4000, load_address=LOAD + DATA - TEXT),
    ]
    symbols = [Symbol(name, int(places[name], 16), sizes[name]) for name in functions]
    return Small(elf64(EM_X86_64, LOAD, parts, [*symbols, *extra], spare_header=spare_header), sizes)


def program(folder: Path, image: Small | None = None) -> Program:
    """The image opened, with its functions."""
    return open_program(open_image((image or small()).write(folder)))
