"""What the README and --help show on small images, on Debian's Linux for amd64 with names of its own functions."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kinst.rewriter import cli as rewriter
from kinst.rewriter.inlining.inlinecall_cli import inlinecall
from kinst.runtime import cli as runtime
from tests.docs.pages import PAGES
from tests.images import at_hand, real_image
from tests.runtime.test_report import data

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not at_hand("linux-amd64"), reason="linux-amd64 was not downloaded"),
]
COMMANDS: dict[str, Any] = {
    "kinst-rewrite": rewriter.rewrite,
    "kinst-list": rewriter.list_probes,
    "kinst-diff": rewriter.diff,
    "kinst-run": runtime.run,
    "kinst-inlinecall": inlinecall,
}
BANNER = "Linux version 6.1"
BOOT = "--append 'console=ttyS0' --clock icount --timeout 30 --console console.txt"

# Where the examples are that Linux must be able to do as well.
SHOWN_IN = (
    "README.md",
    "docs/guide/d-programs.md",
    "docs/guide/inlined-functions.md",
    "docs/guide/pictures.md",
    "docs/guide/rewriting.md",
    "docs/guide/standalone.md",
)
# A piece of each of their commands that takes an image -> what is run on Linux instead. None: it shows what is the
# sample kernel's own, and there is nothing like it in Linux.
README: dict[str, str | None] = {
    "kinst-rewrite opensbi/fw_jump.elf --probe 'fbt:::entry' -o p.elf": "see test_every_entry",
    "kinst-run p.elf -q --until": "see test_every_entry",
    "kinst-diff opensbi/fw_jump.elf p.elf": "see test_every_entry",
    "kinst-rewrite p.elf --restore": "see test_every_entry",
    "kinst::sub_14c3e: --disassemble": "kinst-list vmlinux kinst::__kmalloc: --disassemble",
    "--probe kinst::sub_14c3e:7": "kinst-rewrite vmlinux --probe kinst::start_kernel:1",
    "kinst::kmalloc: --disassemble": "see the one above",
    "kinst::kmalloc:4 /": "see test_programs",
    "--call 'fibonacci(10)'": "kinst-run vmlinux --call 'int_sqrt(144)'",
    "fbt::vfs_*:entry {": "see test_programs",
    "kinst-run -l samples": "kinst-run -l vmlinux -n 'fbt::vfs_read:' -n 'sdt:::'",
    "kinst-run -lv samples": "kinst-run -lv vmlinux -n 'fbt::vfs_read:entry'",
    "self->path = args[0]": "see test_programs",
    "print(*args[0])": "see test_programs",
    "`ncpu, stringof": "see test_programs",
    "kinst-run samples/kernel-amd64.elf --console console.txt -n 'fbt::kmalloc:entry": "see test_programs",
    "kinst::kmalloc:11": "see test_programs",
    "kinst::kmalloc:10": "kinst-run vmlinux -n 'kinst::start_kernel:1 { trace(regs[R_RSP]) }'",
    "kinst-inlinecall v2_limits": "kinst-inlinecall vfs_create vmlinux",
    "-de -n 'kinst::v2_limits:entry": "kinst-run vmlinux -q -de -n 'kinst::vfs_create:entry { @ = count(); }'",
    "--console console.txt -n 'kinst::v2_limits:entry": "see test_programs",
    "profile-4999": "see test_programs",
    "mov w0, #42": "kinst-rewrite vmlinux --patch 'vfs_read = mov eax, 42; ret' -o stub.elf",
    "cbz x0": None,
    "stub.elf | tail": None,
    "stub.elf --restore": None,
    "--standalone --probe fbt:::entry": "see test_standalone",
    "--format perfetto": "see test_formats_on_linux",
    "--format flamegraph": "see test_formats_on_linux",
    "--format folded": "see test_formats_on_linux",
    "--format heatmap": "see test_pictures",
    "--report boot.html": "see test_pictures",
    "callout-time.d": None,
    "rpc-errors.d": None,
}

EXPECTED: dict[str, tuple[int, str]] = {  # status, and what is printed somewhere
    "kinst::__kmalloc: --disassemble": (0, "__kmalloc: 0x"),
    "--probe kinst::start_kernel:1": (1, "offset 1 is inside the instruction at 0; the nearest start at 0, 5"),
    "--call": (0, "int_sqrt(144) = 0xc\n"),
    "kinst-run -l ": (0, "vfs_read entry"),
    "kinst-run -lv": (0, "args[0]: struct file *"),
    "-n 'kinst::start_kernel:1": (1, "offset 1 is inside the instruction at 0; the nearest start at 0, 5"),
    "kinst-inlinecall": (0, "fs/namei.c:"),
    "--patch": (
        1,
        "at the call of the kernel's function tracer, which writes here; vfs_read+0x5 comes after it",
    ),
    "-de": (0, "vfs_create"),
}


@pytest.fixture
def vmlinux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str]]:
    """A folder with the image in it, and what runs a command there: its status and output."""
    (tmp_path / "vmlinux").symlink_to(real_image("linux-amd64"))
    monkeypatch.chdir(tmp_path)

    def execute(command: str) -> tuple[int, str]:
        name, *words = shlex.split(command)
        result = CliRunner().invoke(COMMANDS[name], words, prog_name=name)
        return result.exit_code, result.output

    return execute


def test_every_example_of_the_readme_is_here() -> None:
    """That takes an image; those on none are the same everywhere."""
    commands = [
        example.code
        for page in PAGES
        if page.name in SHOWN_IN
        for block in page.blocks
        for example in block
        if not example.is_python and re.search(r"samples/kernel|fw_jump|p\.elf", example.code)
    ]
    found = {command: [piece for piece in README if piece in command] for command in commands}
    assert {command for command, pieces in found.items() if not pieces} == set()
    assert {piece for pieces in found.values() for piece in pieces} == set(README)


@pytest.mark.parametrize("command", [text for text in README.values() if text and text.startswith("kinst")])
def test_examples_that_boot_nothing(vmlinux: Callable[[str], tuple[int, str]], command: str) -> None:
    status, text = next(said for piece, said in EXPECTED.items() if piece in command)
    code, output = vmlinux(command)
    assert code == status, output
    assert text in re.sub(" +", " ", output)


PROGRAMS = r"""
BEGIN { printf("%d CPUs, %s", `nr_cpu_ids, stringof(`linux_banner)); }
fbt::vfs_*:entry { @calls[probefunc] = count(); }
fbt::vfs_parse_fs_string:entry { self->key = args[1]; }
fbt::vfs_parse_fs_param:entry /self->key/ { @keys[stringof(self->key)] = count(); }
fbt::register_filesystem:entry /args[0]->name[0] == 't'/ { print(*args[0]); }
fbt::__kmalloc:entry /arg0 > 4000/ { @sizes[stack()] = sum(arg0); }
kinst::start_kernel: /!seen/ { seen = 1; printf("first 0x%x\n", regs[R_RSP]); }
kinst::get_current:entry { @inlined[probefunc] = count(); }
fbt::do_one_initcall:entry /!null/ { null = 1; trace(*(int *)0x20000); }
profile-997 { @busy[func(arg0)] = count(); }
"""


def test_programs(vmlinux: Callable[[str], tuple[int, str]]) -> None:
    code, output = vmlinux(f"kinst-run -q vmlinux {BOOT} --until 'clocksource: Switched' -n {shlex.quote(PROGRAMS)}")
    assert code == 0, output
    assert output.startswith(f"8192 CPUs, {BANNER}")
    for text in ("vfs_get_tree  ", "source  ", "init_fs_context = vmlinux`shmem_init_fs_context", "first 0xffffffff8"):
        assert text in output
    assert re.search(r"vmlinux`start_kernel\+0x[0-9a-f]+\n(?: .*\n)* +[0-9]+\n", output)  # a stack and its sum
    assert re.search(r"^  kernel_init_freeable +[0-9]+$", output, re.MULTILINE)  # a function is inlined there
    assert re.search(r"^  vmlinux`\w+ +[0-9]+$", output, re.MULTILINE)  # where the time goes
    # Per-CPU variables are linked at 0, but nothing is mapped there.
    assert "do_one_initcall:entry): invalid address (0x20000) in action #2" in output


def test_every_entry(vmlinux: Callable[[str], tuple[int, str]], tmp_path: Path) -> None:
    """The first examples of kinst-rewrite, kinst-diff and kinst-run, and the README's first."""
    code, output = vmlinux("kinst-rewrite vmlinux --probe fbt:::entry -o p.elf")
    assert code == 0, output
    probes = int(re.search(r"p\.elf: ([0-9,]+) probes", output)[1].replace(",", ""))  # type: ignore[index]
    assert probes > 40_000
    code, output = vmlinux("kinst-diff vmlinux p.elf --verbose")
    assert code == 0, output[-2000:]
    code, output = vmlinux(f"kinst-run p.elf {BOOT} --until '{BANNER}' -o hits.txt")
    assert code == 0, output
    assert "start_kernel:entry" in (tmp_path / "hits.txt").read_text()
    assert BANNER in (tmp_path / "console.txt").read_text()
    code, output = vmlinux("kinst-rewrite p.elf --restore -o original.elf")
    assert code == 0, output
    with Path("original.elf").open("rb") as restored, Path("vmlinux").open("rb") as original:
        while block := original.read(1 << 24):
            assert restored.read(1 << 24) == block
        assert not restored.read(1)
    Path("original.elf").unlink()
    Path("p.elf").unlink()


def test_first_examples_of_help(vmlinux: Callable[[str], tuple[int, str]]) -> None:
    """Those of kinst-list, kinst-run and kinst-inlinecall, word by word; the others' are above."""
    code, output = vmlinux("kinst-list vmlinux")
    assert code == 0
    assert output.count(":entry" if ":entry" in output else " entry") > 40_000
    program = "fbt:::entry { @[probefunc] = count(); }"
    code, output = vmlinux(f"kinst-run vmlinux {BOOT} --until '{BANNER}' -n '{program}'")
    assert code == 0, output
    assert re.search(r"^ +start_kernel +1$", output, re.MULTILINE)
    code, output = vmlinux("kinst-inlinecall get_current vmlinux --format json")
    assert code == 0
    assert sum(len(one["copies"]) for one in json.loads(output)) > 4000


def test_pictures(vmlinux: Callable[[str], tuple[int, str]], tmp_path: Path) -> None:
    """A report and a heat map of the start, in one run."""
    program = "fbt::memblock_*:entry { @sizes = quantize(arg1); @stacks[stack()] = count(); }"
    files = "--report boot.html --format heatmap -o sizes.svg"
    code, output = vmlinux(f"kinst-run -q vmlinux {BOOT} --until 'Mount-cache' {files} -n '{program}'")
    assert code == 0, output
    assert "start_kernel" in json.dumps(data(tmp_path / "boot.html"))
    assert "@sizes" in (tmp_path / "sizes.svg").read_text()
