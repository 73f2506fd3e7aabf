"""Assembly with names of the image, on three machines: the bytes are what the text says, or there are none."""

from dataclasses import replace
from pathlib import Path

import pytest

from kinst.rewriter.assemble import assemble
from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.patching.assembly import assembled
from kinst.rewriter.patching.request import parse_patch
from kinst.rewriter.program import Program, open_program
from kinst.targets.elf.header import FileKind
from kinst.targets.errors import KinstError
from kinst.targets.image import open_image
from tests.samples.machines import MACHINES
from tests.targets.debuginfo.compiled import compiled

NAMES = ("vfs_report", "vfs_walk", "ncpu")


@pytest.fixture(scope="module")
def programs() -> dict[str, Program]:
    return {name: open_program(open_image(sample.image)) for name, sample in MACHINES.items()}


def place(program: Program, name: str) -> int:
    address = program.image.symbols.address_of(name)
    assert address is not None
    return address


def code_of(program: Program, text: str) -> bytes:
    return assembled(program, parse_patch(f"vfs_report = {text}"), place(program, "vfs_report"))


def text_of(program: Program, text: str) -> str:
    """What capstone makes of the bytes; the addresses of names are written as those names."""
    lines = disassemble(program.image.facts, code_of(program, text), place(program, "vfs_report"))
    shown = "; ".join(line.text for line in lines)
    for name in NAMES:
        shown = shown.replace(f"{place(program, name):#x}", name)
    return shown


@pytest.mark.parametrize(
    ("machine", "text", "shown"),
    [
        ("amd64", "mov eax, 10; ret", "movl $0xa, %eax; retq"),
        ("amd64", "movl $10, %eax; ret", "movl $0xa, %eax; retq"),
        ("amd64", "mov eax, -1; mov al, 0xff", "movl $0xffffffff, %eax; movb $0xff, %al"),
        ("amd64", "mov rax, [rbp-8]; sub rsp, 0x28", "movq -8(%rbp), %rax; subq $0x28, %rsp"),
        ("amd64", "call vfs_walk; jmp vfs_report; jne vfs_walk", "callq vfs_walk; jmp vfs_report; jne vfs_walk"),
        ("amd64", "jmp .; jmp . + 4", "jmp vfs_report; jmp {vfs_report+6:#x}"),
        ("amd64", "mov rax, cr3; mov gs, ax; xor eax, eax", "movq %cr3, %rax; movw %ax, %gs; xorl %eax, %eax"),
        ("amd64", "mov rax, gs:[0x10]", "movabsq %gs:0x10, %rax"),
        ("amd64", "mov %gs:0x10, %rax", "movabsq %gs:0x10, %rax"),
        ("amd64", "mov rax, ncpu", "movq ${ncpu}, %rax"),
        ("arm64", "mov w0, #0; ret", "mov w0, #0; ret"),
        ("arm64", "b vfs_walk; bl vfs_walk+8; cbz x0, vfs_walk", "b #vfs_walk; bl #{vfs_walk+8:#x}; cbz x0, #vfs_walk"),
        ("arm64", "add x0, x0, #0x1000; movz x1, #5, lsl #16", "add x0, x0, #1, lsl #12; mov x1, #0x50000"),
        ("arm64", "mov x0, #-1; and x0, x0, #-2; stp x29, x30, [sp, #-16]!",
         "mov x0, #-1; and x0, x0, #0xfffffffffffffffe; stp x29, x30, [sp, #-0x10]!"),
        ("arm64", "mrs x0, sctlr_el1; csel x0, x1, x2, eq; dmb ish", "mrs x0, sctlr_el1; csel x0, x1, x2, eq; dmb ish"),
        ("riscv64", "li a0, 0; ret", "mv a0, zero; ret"),
        ("riscv64", "c.li a0, 0; c.jr ra", "c.li a0, 0; c.jr ra"),
        ("riscv64", "beqz a0, . + 8", "beqz a0, 8"),
    ],
)  # fmt: skip
def test_the_bytes_are_what_the_text_says(programs: dict[str, Program], machine: str, text: str, shown: str) -> None:
    program = programs[machine]
    for name in NAMES:
        for offset in (0, 6, 8):
            shown = shown.replace(f"{{{name}+{offset}:#x}}", f"{place(program, name) + offset:#x}")
        shown = shown.replace(f"{{{name}}}", str(place(program, name)))
    assert text_of(program, text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "mov rax, [rip+ncpu]", "lea rdi, [ncpu + rip]", "mov byte ptr [rip + ncpu], 5",
        "mov ncpu(%rip), %rax", "leaq ncpu ( %rip ), %rdi", "movb $5, ncpu(%rip)",
    ],
)  # fmt: skip
def test_names_beside_rip_are_addresses(programs: dict[str, Program], text: str) -> None:
    program = programs["amd64"]
    code = code_of(program, text)
    (line,) = disassemble(program.image.facts, code, place(program, "vfs_report"))
    displacement = int(line.text.partition("(%rip)")[0].split()[-1], 0)
    assert place(program, "vfs_report") + len(code) + displacement == place(program, "ncpu")


def test_calls_of_riscv64_reach_their_function(programs: dict[str, Program]) -> None:
    program = programs["riscv64"]
    code = code_of(program, "call vfs_walk")
    high, low = int.from_bytes(code[:4], "little") & ~0xFFF, int.from_bytes(code[4:], "little", signed=True) >> 20
    high -= (high & 1 << 31) << 1
    assert place(program, "vfs_report") + high + low == place(program, "vfs_walk")


@pytest.mark.parametrize(
    ("machine", "text", "why"),
    [
        ("amd64", "mov al, 0x1234", "would become 'movb $0x34, %al', which is without 0x1234"),
        ("amd64", "mov eax, 0x123456789", "without 0x123456789"),
        ("amd64", "add eax, 0x100000000", "without 0x100000000"),
        ("amd64", "push 0xffffffff", "would become 'pushw $0xffff'"),
        ("amd64", "ret 0x12345", "without 0x12345"),
        ("amd64", "cmp byte ptr [rdi], 300", "without 0x12c"),
        ("amd64", "mov eax, [rax+0x123456789]", "without 0x123456789"),
        ("amd64", "mov eax, 010", "010 is no whole number"),
        ("amd64", "lock; inc dword ptr [rax]", "'lock'"),
        ("amd64", "jmp nosuch", "'jmp nosuch': it names what is no symbol of the image"),
        ("amd64", "endbr64", "keystone does not know this instruction: write its bytes, hex:..."),
        ("amd64", "mov eax,", "'mov eax,'"),
        ("amd64", "again: jmp again", "without labels, directives"),
        ("amd64", "call [ (", "a bracket without its other half"),  # callq *0
        ("amd64", "[rip+ncpu]", "instructions only"),  # keystone comes to no end
        ("amd64", "mov eax, é", "instructions only"),
        ("amd64", ".byte 0x90", "without labels, directives"),
        ("amd64", ";", "no instruction in it"),
        ("arm64", "cbz x0, 0x48083610", "without 0x48083610"),
        ("arm64", "bl 0x10000000", "without 0x10000000"),
        ("arm64", "adr x0, vfs_walk+3", "'adr x0"),
        ("arm64", "mov x0, #0x12345", "an operand does not fit"),
        ("arm64", "ldr x0, =5", "literals"),
        ("arm64", "add x0, x0, :lo12:vfs_walk", "labels, directives, comments and literals"),
        ("riscv64", "addi a0, a0, 2048", "0x800 does not fit"),
        ("riscv64", "j nosuch", "'nosuch' is no number"),
    ],
)
def test_what_an_assembler_would_get_wrong_is_refused(
    programs: dict[str, Program], machine: str, text: str, why: str
) -> None:
    with pytest.raises(KinstError) as error:
        code_of(programs[machine], text)
    assert why in str(error.value)


def test_keystone_makes_something_else_of_it() -> None:
    """The reason for reading back: should this fail, a new keystone is better."""
    facts = open_image(MACHINES["amd64"].image).facts
    assert assemble(facts, "mov al, 0x1234", is_plain=True) == assemble(facts, "mov al, 0x34", is_plain=True)


@pytest.mark.parametrize(
    ("machine", "absolute", "relative"),
    [
        ("amd64", "mov rax, vfs_walk", "lea rax, [rip + vfs_walk]; call vfs_walk"),
        ("arm64", None, "bl vfs_walk; ldr x0, vfs_walk"),
        ("riscv64", "li a0, vfs_walk", "la a0, vfs_walk; j vfs_walk"),
    ],
)
def test_an_image_that_moves_holds_no_addresses(
    programs: dict[str, Program], machine: str, absolute: str | None, relative: str
) -> None:
    image = programs[machine].image
    moving = replace(programs[machine], image=replace(image, header=replace(image.header, kind=FileKind.DYN)))
    assert code_of(moving, relative) == code_of(programs[machine], relative)
    if absolute is not None:
        try:
            assert code_of(programs[machine], absolute)
        except KinstError as error:
            assert "more than two instructions" in str(error)
            return
        with pytest.raises(KinstError, match="holds an address, and this image can be loaded elsewhere"):
            code_of(moving, absolute)


def test_a_kernel_that_kept_its_relocations_can_be_moved(tmp_path: Path) -> None:
    source = ".globl _start, f\n.type f, @function\n_start: ret\nf: mov $_start, %rax\nret\n.size f, . - f\n"
    for options in ((), ("-Wl,--emit-relocs",)):
        image = compiled(tmp_path, "amd64", {"kernel.S": source}, "-static", "-no-pie", *options)
        program, text = open_program(image), parse_patch("f = mov rax, _start")
        if not options:
            assert assembled(program, text, place(program, "f"))
            continue
        with pytest.raises(KinstError, match="holds an address, and this image can be loaded elsewhere"):
            assembled(program, text, place(program, "f"))


def test_a_name_of_several_symbols_is_not_chosen(programs: dict[str, Program]) -> None:
    program = programs["amd64"]
    symbols = program.image.symbols
    twice = symbols.take(symbols.rows_named("vfs_walk"))
    twice = replace(twice, address=twice.address + twice.address.dtype.type(2))
    ambiguous = replace(program, image=replace(program.image, symbols=symbols.joined(twice)))
    with pytest.raises(KinstError, match=r"2 symbols are called 'vfs_walk': write the address, 0x\w+, 0x\w+"):
        code_of(ambiguous, "call vfs_walk")
