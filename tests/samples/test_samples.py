"""The sample kernel: the committed images do what their sources say, on every machine and number of CPUs."""

import re
import shlex
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import capstone
import pytest
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

from tests.commands.in_process import kinst_run
from tests.samples.machines import MACHINES, SAMPLES, Sample, expected_console, memory_at_exit, missing, run_qemu


@pytest.fixture(params=sorted(MACHINES))
def sample(request: pytest.FixtureRequest) -> Sample:
    return MACHINES[request.param]


@pytest.fixture
def emulated(sample: Sample) -> Sample:
    reason = missing(sample.qemu[0])
    if reason:
        pytest.skip(reason)
    return sample


@pytest.mark.parametrize("cpus", [1, 2, 3, 4])
def test_console_under_qemu_is_the_golden_one(emulated: Sample, cpus: int) -> None:
    assert run_qemu(emulated, emulated.image, "-smp", str(cpus)) == expected_console(cpus)


@pytest.mark.parametrize("cpus", [1, 4])
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_console_under_kinst_run_is_the_golden_one(machine: str, cpus: int, tmp_path: Path) -> None:
    console = tmp_path / "console"
    result = kinst_run(MACHINES[machine].image, "--cpus", cpus, "--clock", "icount", "--console", console)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert console.read_text().replace("\r\n", "\n") == expected_console(cpus)


def test_rebuilt_image_behaves_like_the_committed_one(emulated: Sample, tmp_path: Path) -> None:
    reason = missing(emulated.compiler)
    if reason:
        pytest.skip(reason)
    subprocess.run([SAMPLES / "kernel" / "build", "-o", tmp_path, emulated.name], check=True)
    rebuilt = tmp_path / emulated.image.name
    assert run_qemu(emulated, rebuilt, "-smp", "2") == expected_console(2)
    assert function_names(rebuilt) == function_names(emulated.image)


@pytest.mark.parametrize("cpus", [1, 4])
def test_memory_at_exit_does_not_depend_on_the_clock(emulated: Sample, cpus: int, tmp_path: Path) -> None:
    """The kernel's promise that tools lean on which compare a patched run with a plain one."""
    reason = missing("gdb-multiarch")
    if reason:
        pytest.skip(reason)
    start, size = memory_of(emulated.image)
    dumps = {
        memory_at_exit(emulated, tmp_path, "power_off", start, size, "-smp", str(cpus), *clock)
        for clock in ([], ["-icount", "shift=0"], ["-icount", "shift=7,sleep=off"])
    }
    assert len(dumps) == 1
    assert any(dumps.pop())


def test_readme_has_the_command_lines_that_are_tested(sample: Sample) -> None:
    readme = (SAMPLES / "README.md").read_text()
    image = f"samples/{sample.image.name}"
    assert shlex.join([*sample.qemu, "-display", "none", "-serial", "stdio", "-kernel", image]) in readme


def test_segments_are_those_of_a_kernel(sample: Sample) -> None:
    with sample.image.open("rb") as file:
        segments = list(ELFFile(file).iter_segments())
    kinds = [segment["p_type"] for segment in segments]
    assert "PT_GNU_STACK" in kinds
    assert "PT_NOTE" in kinds
    flags = [segment["p_flags"] for segment in segments if segment["p_type"] == "PT_LOAD"]
    assert flags[-3:] == [5, 4, 6]


def test_amd64_image_has_both_boot_headers() -> None:
    """GRUB reads 8192 bytes, QEMU would refuse a 64-bit image whose header it sees in the first 8144."""
    data = MACHINES["amd64"].image.read_bytes()
    header = data.index(struct.pack("<III", 0x1BADB002, 0, -0x1BADB002 & 0xFFFFFFFF))
    assert 8192 - 48 <= header <= 8192 - 12
    assert struct.pack("<III4sI", 4, 4, 18, b"Xen\0", 0x100000) in data


def test_debug_information_is_dwarf_5_with_nested_inlining(sample: Sample) -> None:
    with sample.image.open("rb") as file:
        units = list(ELFFile(file).get_dwarf_info().iter_CUs())
        copies = [die for unit in units for die in unit.iter_DIEs() if die.tag == "DW_TAG_inlined_subroutine"]
        names = {origin_name(die) for die in copies}
        nested = [die for die in copies if any(parent in copies for parent in parents(die))]
    assert {unit["version"] for unit in units} == {5}
    assert {"critical_enter", "critical_exit", "spin_lock", "atomic_cas", "list_empty", "v2_limits"} <= names
    assert len(nested) > 20


# What tools must cope with and therefore must be there: exclusives, indirect tail calls and jump tables, landing pads,
# the kernel's own breakpoint, sleep.
MNEMONICS = {
    "amd64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64, {"lock cmpxchg", "jmp", "endbr64", "int3", "hlt", "iretq"}),
    "arm64": (capstone.CS_ARCH_ARM64, 0, {"ldaxr", "stlxr", "br", "paciasp", "autiasp", "brk", "wfi", "hvc", "eret"}),
    "riscv64": (
        capstone.CS_ARCH_RISCV,
        capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC,
        {"lr.w.aq", "sc.w.rl", "c.jr", "c.ebreak", "wfi", "mret"},
    ),
}


def test_instructions_that_are_hard_to_trace_are_there(sample: Sample) -> None:
    arch, mode, expected = MNEMONICS[sample.name]
    decoder = capstone.Cs(arch, mode)
    decoder.skipdata = True
    with sample.image.open("rb") as file:
        text = ELFFile(file).get_section_by_name(".text")
        found = {mnemonic for _, _, mnemonic, _ in decoder.disasm_lite(text.data(), text["sh_addr"])}
    assert expected <= found


def test_tail_calls_and_jump_tables_are_indirect_jumps(sample: Sample) -> None:
    """Of each of these functions gcc could have made a call and a return, or a chain of comparisons."""
    for name in ("vfs_read", "vfs_write", "if_input", "bpf_filter"):
        assert INDIRECT_JUMP[sample.name](function_bytes(sample.image, name)), name


# jmp *(...) with or without a table; br xN; c.jr of another register than ra.
INDIRECT_JUMP: dict[str, Callable[[bytes], bool]] = {
    "amd64": lambda code: re.search(rb"\xff[\x20-\x27\x60-\x67\xe0-\xe7]", code) is not None,
    "arm64": lambda code: any(word & 0xFFFFFC1F == 0xD61F0000 for (word,) in struct.iter_unpack("<I", code)),
    "riscv64": lambda code: any(
        half & 0xF07F == 0x8002 and half != 0x8082 for (half,) in struct.iter_unpack("<H", code)
    ),
}


def function_bytes(image: Path, name: str) -> bytes:
    with image.open("rb") as file:
        elf = ELFFile(file)
        symbol = elf.get_section_by_name(".symtab").get_symbol_by_name(name)[0]
        text = elf.get_section_by_name(".text")
        offset = symbol["st_value"] - text["sh_addr"]
        code: bytes = text.data()[offset : offset + symbol["st_size"]]
        return code


def function_names(image: Path) -> set[str]:
    with image.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return {symbol.name for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC"}


def memory_of(image: Path) -> tuple[int, int]:
    """Physical start and size of what the kernel occupies."""
    with image.open("rb") as file:
        loads = [segment for segment in ELFFile(file).iter_segments() if segment["p_type"] == "PT_LOAD"]
        start = min(load["p_paddr"] for load in loads)
        return start, max(load["p_paddr"] + load["p_memsz"] for load in loads) - start


def parents(die: DIE) -> Iterator[DIE]:
    parent = die.get_parent()
    while parent is not None:
        yield parent
        parent = parent.get_parent()


def origin_name(die: DIE) -> str:
    name: bytes = die.get_DIE_from_attribute("DW_AT_abstract_origin").attributes["DW_AT_name"].value
    return name.decode()
