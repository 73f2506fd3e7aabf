"""Modules that are not linked (ET_REL) are patched as images are, and leave to relocations what nobody knows yet."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import diff, list_probes, rewrite
from kinst.targets.errors import ManifestError
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from tests.contract import check_contract

SOURCE = """
extern int elsewhere; int here = 3; extern int outside(int value);
__attribute__((section(".text.apart"), noinline)) int apart(int value) { return value * 5 + (value ^ 9); }
__attribute__((noinline)) int near(int value) { return elsewhere * value + here; }
int first(int value) { here = value; return apart(value) + near(value) + outside(value); }
"""
# What a kernel looks up and writes when it loads a module, and a distance within a section, which needs no relocation.
KERNEL = """
    .text
    .globl traced
    .type traced, @function
traced:
1:  call __fentry__
    push %rbx
    mov table(%rip), %ebx
    pop %rbx
2:  jmp __x86_return_thunk
    .size traced, . - traced
table:
    .long 7
    .section __mcount_loc, "a"
    .quad 1b
    .section .return_sites, "a"
    .long 2b - .
"""
COMPILERS = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}


def compiled(folder: Path, machine: str, source: str = SOURCE, name: str = "a.c") -> Path:
    compiler = COMPILERS[machine]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    (folder / name).write_text(source)
    command = [compiler, "-O2", "-ffreestanding", "-fno-pic", "-c", "-o", "module.ko", name]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return folder / "module.ko"


def rewritten(path: Path, *options: str) -> Path:
    out = path.with_name("module.kinst.ko")
    result = CliRunner().invoke(rewrite, [str(path), "-o", str(out), *options])
    assert result.exit_code == 0, result.output
    return out


@pytest.mark.parametrize("machine", COMPILERS)
def test_a_module_is_patched_explained_and_restored(machine: str, tmp_path: Path) -> None:
    module = compiled(tmp_path, machine)
    out = rewritten(module, "-p", "fbt:::", "-p", "kinst:::")
    assert len(check_contract(module.read_bytes(), out.read_bytes())) >= 10
    assert CliRunner().invoke(diff, [str(module), str(out)]).exit_code == 0

    changed = bytearray(out.read_bytes())
    changed[open_image(out).section(".kinst.text").offset + 1] ^= 1  # type: ignore[union-attr]
    (tmp_path / "changed.ko").write_bytes(changed)
    assert "UNEXPLAINED" in CliRunner().invoke(diff, [str(module), str(tmp_path / "changed.ko")]).output

    back = tmp_path / "back.ko"
    assert CliRunner().invoke(rewrite, ["--restore", str(out), "-o", str(back)]).exit_code == 0
    assert back.read_bytes() == module.read_bytes()


@pytest.mark.parametrize("machine", COMPILERS)
def test_binutils_take_it_as_a_module(machine: str, tmp_path: Path) -> None:
    out = rewritten(compiled(tmp_path, machine), "-p", "kinst:::", "--trampoline-symbols")
    prefix = COMPILERS[machine].removesuffix("gcc")
    for tool in ("readelf -aW", "objdump -drw", "ld -r -o again.o"):
        done = subprocess.run([*f"{prefix}{tool}".split(), str(out)], capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), tool
    assert "kinst$near+" in subprocess.run(
        [f"{prefix}nm", str(tmp_path / "again.o")], capture_output=True, text=True, check=True
    ).stdout  # fmt: skip


def test_a_linker_lets_trampolines_lead_back(tmp_path: Path) -> None:
    """Linked at addresses of the linker's choice, each trampoline jumps to what follows its site."""
    out = rewritten(compiled(tmp_path, "amd64"), "-p", "kinst::apart:", "-p", "kinst::near:")
    subprocess.run(
        ["ld", "-o", "linked", "-e", "first", "--defsym=outside=0", "--defsym=elsewhere=0", str(out)],
        check=True, cwd=tmp_path, capture_output=True,
    )  # fmt: skip
    linked, manifest = open_image(tmp_path / "linked"), find_manifest(open_image(out))
    text, code = linked.section(".kinst.text"), b""
    assert text is not None and manifest is not None
    with pytest.raises(ManifestError, match="there are trampolines, and no manifest"):  # it was about the module
        find_manifest(linked)
    code, before = linked.read(text.address, text.size), open_image(out)
    for site in manifest.sites:
        row = int(site["function"])
        start, name = int(manifest.functions["address"][row]), manifest.function_name(row)
        now, size = linked.symbols.address_of(name), int(site["size"])
        slot = int(site["trampoline"]) - manifest.trampolines[0]
        if code[slot] == 0xCC:
            continue  # emulated
        assert now is not None and code[slot : slot + size] == bytes(site["original"])[:size]
        opcode, distance = struct.unpack_from("<Bi", code, slot + size)
        assert opcode == 0xE9
        back = text.address + slot + size + 5 + distance
        assert back == now + int(site["address"]) - start + size != before.symbols.address_of(name)


def test_what_the_kernel_writes_in_a_module_is_left_alone(tmp_path: Path) -> None:
    """A call of the function tracer is stepped over. A distance within a section becomes a relocation's."""
    module = compiled(tmp_path, "amd64", KERNEL, "a.s")
    out = rewritten(module, "-p", "fbt:::entry", "-p", "kinst::traced:")
    check_contract(module.read_bytes(), out.read_bytes())
    manifest, start = find_manifest(open_image(out)), open_image(module).symbols.address_of("traced")
    assert manifest is not None and start is not None
    assert (manifest.sites["address"] - start).tolist() == [5, 6, 12]
    code = subprocess.run(
        ["objdump", "-drw", "-j", ".kinst.text", str(out)], check=True, capture_output=True, text=True
    ).stdout
    assert "R_X86_64_PC32" in code

    result = CliRunner().invoke(list_probes, [str(module), "fbt::traced:return"])
    assert result.exit_code == 1
    assert "a return through a thunk: at boot the kernel writes how it returns on this CPU" in result.stderr


def test_a_signature_does_not_count_any_more(tmp_path: Path) -> None:
    module = compiled(tmp_path, "amd64")
    with module.open("ab") as file:
        file.write(b"signature" + b"~Module signature appended~\n")
    out = tmp_path / "out.ko"
    result = CliRunner().invoke(rewrite, [str(module), "-p", "fbt:::entry", "-o", str(out)])
    assert result.exit_code == 0 and "was signed" in result.stderr
    check_contract(module.read_bytes(), out.read_bytes())


def test_a_section_without_a_symbol_of_its_own_is_refused_in_a_line(tmp_path: Path) -> None:
    """Another module's function may take the place of a weak one: trampolines would jump there."""
    weak = ".text\n.weak f\n.type f, @function\nf: mov $1, %eax\nnop\nret\n.size f, . - f\n"
    module = compiled(tmp_path, "amd64", weak, "a.s")
    result = CliRunner().invoke(rewrite, [str(module), "-p", "fbt:::entry", "-o", str(tmp_path / "out.ko")])
    assert result.exit_code == 1 and len(result.stderr.splitlines()) == 1
    assert "no symbol is defined in .text, to which trampolines must refer" in result.stderr
    assert not (tmp_path / "out.ko").exists()


def test_its_loader_places_trampolines(tmp_path: Path) -> None:
    options = ["-p", "fbt:::entry", "--trampoline-base", "0x1000"]
    result = CliRunner().invoke(rewrite, [str(compiled(tmp_path, "amd64")), *options])
    assert result.exit_code == 1 and "there is nothing to say with --trampoline-base" in result.stderr
