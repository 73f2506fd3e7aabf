"""What clauses read -> the fields of a record that tell it, by image, machine and number of CPUs."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from kinst.runtime.live.fields import Fields, NotKeptError, joined
from kinst.targets.c_types import Aggregate, AggregateKind, Array, CType, Integer, Member, NoImageTypes
from kinst.targets.image import Image, open_image
from kinst.targets.manifest.packed import ProbeKind
from tests.writers.elf import EM_AARCH64, EM_RISCV, EM_X86_64, Part, Symbol, elf64

CODE, DATA = 0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_8200_0000
MRET, SRET, NOP = "73002030", "73002010", "13000000"
ENTRY = {int(ProbeKind.FBT_ENTRY)}
WORD, NUMBER = Integer("unsigned long", 8, is_signed=False), Integer("int", 4, is_signed=True)
NAME = Array(Integer("char", 1, is_signed=True), 16)
LINUX = ("init_task", "__per_cpu_offset", "current_task")


@dataclass(frozen=True)
class Types(NoImageTypes):
    """Those of a task with these members."""

    members: tuple[Member, ...]

    def type_named(self, name: str, module: str = "") -> CType | None:
        task = Aggregate(AggregateKind.STRUCT, "task_struct", 0x1000, 8, self.members)
        return task if name == "struct task_struct" else None


TYPES = Types(
    (
        *(Member("cpu", NUMBER, 0x14), Member("stack", WORD, 0x18), Member("pid", NUMBER, 0x5A0)),
        *(Member("tgid", NUMBER, 0x5A4), Member("stack_canary", WORD, 0x5A8), Member("comm", NAME, 0x76C)),
    )
)


def image(machine: int, folder: Path, code: str = NOP, symbols: tuple[str, ...] = ()) -> Image:
    named = [Symbol(name, DATA + 16 * row, 8) for row, name in enumerate(symbols)]
    parts = [Part(".text", CODE, bytes.fromhex(code * 2), 5), Part(".data", DATA, bytes(64), 6)]
    path = folder / "image.elf"
    path.write_bytes(elf64(machine, CODE, parts, [Symbol("start", CODE, 8), *named]))
    return open_image(path)


def fields(image: Image, cpus: int = 2, types: NoImageTypes = TYPES, system: str = "auto") -> Fields:
    return Fields(image, types, system, lambda: cpus)


@pytest.mark.parametrize(
    ("machine", "code", "symbols", "expected"),
    [
        (EM_AARCH64, NOP, (), ["cpu"]),
        (EM_AARCH64, NOP, LINUX, ["cpu"]),
        (EM_X86_64, NOP, (), ["cpu"]),
        (EM_X86_64, NOP, LINUX, ["task", "task+0x10"]),
        (EM_RISCV, MRET, (), ["cpu"]),
        (EM_RISCV, NOP, LINUX, ["task", "task+0x10"]),
    ],
)
def test_what_tells_the_cpu(
    machine: int, code: str, symbols: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    made = image(machine, tmp_path, code, symbols)
    assert [*fields(made).of("cpu", ENTRY)] == expected
    assert [*fields(made, cpus=1).of("cpu", ENTRY)] == []


@pytest.mark.parametrize("code", [NOP, SRET, MRET + SRET])
def test_below_machine_mode_no_instruction_tells_the_cpu(code: str, tmp_path: Path) -> None:
    made = image(EM_RISCV, tmp_path, code)
    with pytest.raises(NotKeptError, match="of several CPUs, nothing tells which one"):
        fields(made).of("cpu", ENTRY)
    assert [*fields(made, cpus=1).of("cpu", ENTRY)] == []


def test_words_of_a_task_hold_whole_members(tmp_path: Path) -> None:
    linux = fields(image(EM_X86_64, tmp_path, NOP, LINUX))
    assert [*linux.of("execname", ENTRY)] == ["task", "task+0x768", "task+0x770", "task+0x778"]
    assert [*linux.of("pid", ENTRY)] == [*linux.of("tid", ENTRY)] == ["task", "task+0x5a0"]
    assert [*linux.of("curthread", ENTRY)] == ["task"]
    assert [*linux.of_thread()] == ["task", "task+0x5a8", "task+0x18", "rsp"]


def test_where_there_is_no_system_names_are_the_images(tmp_path: Path) -> None:
    for bare in (fields(image(EM_X86_64, tmp_path)), fields(image(EM_X86_64, tmp_path, NOP, LINUX), system="none")):
        assert [*bare.of("execname", ENTRY), *bare.of("uid", ENTRY)] == []
        assert [*bare.of_thread()] == ["rip", "rsp", "rbp", "stack*64"]


def test_what_cannot_be_kept_says_why(tmp_path: Path) -> None:
    made = image(EM_X86_64, tmp_path, NOP, LINUX)
    with pytest.raises(NotKeptError, match="is not recorded under QEMU"):
        fields(made).of("uid", ENTRY)
    with pytest.raises(NotKeptError, match="its types do not tell where a task has it"):
        fields(made, types=NoImageTypes()).of("execname", ENTRY)


def test_a_caller_takes_little_at_an_entry_and_a_stack_elsewhere(tmp_path: Path) -> None:
    kinst = {int(ProbeKind.KINST)}
    amd64, arm64 = fields(image(EM_X86_64, tmp_path)), fields(image(EM_AARCH64, tmp_path))
    assert [*amd64.of("caller", ENTRY)] == ["rip", "rsp", "rbp", "stack*4"]
    assert [*arm64.of("caller", ENTRY)] == ["pc", "sp", "x29", "x30"]
    assert [*arm64.of("caller", kinst)] == [*arm64.of("stack()", ENTRY)] == ["pc", "sp", "x29", "x30", "stack*512"]


def test_fields_are_joined_with_the_deepest_stack_at_their_end() -> None:
    asked = ("time", "stack*4", "rsp", "time", "stack*64+0x18:0x4000", "stack*512", "arg0")
    assert joined(asked) == ("time", "rsp", "arg0", "stack*512+0x18:0x4000")
    assert joined(("arg0", "arg0")) == ("arg0",)
