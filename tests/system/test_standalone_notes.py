"""Static probes that are nothing but a nop and a note: standalone images count them, as breakpoints do."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.assemble import assemble
from kinst.rewriter.cli import rewrite
from kinst.runtime.cli import run
from kinst.targets.arch.amd64 import AMD64
from tests.targets.test_static_probes import note
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

CODE, WORK, FREE, DATA = 0x20_0000, 0x20_0100, 0x30_0000, 0x20_4000
ALONE = ("--standalone", "--trampoline-base", hex(FREE), "--probe", "sdt:::")


def guest(folder: Path, semaphore: int = 0) -> Path:
    """Calls work three times, in which the static probe is behind the first instruction."""
    start = f"mov $0x400000, %rsp; mov $3, %ebx; next: call {WORK:#x}; dec %ebx; jne next; outb %al, $0xf4"
    work = "mov $1, %eax; nop; add $2, %eax; xor %ecx, %ecx; ret"
    text = assemble(AMD64, start, CODE).ljust(WORK - CODE, b"\xcc") + assemble(AMD64, work, WORK)
    notes = note(b"app", b"step", b"-4@%eax", address=WORK + 5, base=0, semaphore=semaphore)
    parts = [Part(".text", CODE, text, 7), Part(".note.stapsdt", 0x20_2000, notes, 4), Part(".data", DATA, bytes(8), 6)]
    symbols = [Symbol("start", CODE, 0x40), Symbol("work", WORK, len(text) - (WORK - CODE))]
    path = folder / "guest.elf"
    path.write_bytes(elf64(EM_X86_64, CODE, parts, symbols))
    return path


def called(command: object, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])  # type: ignore[arg-type]


def traced(path: Path, program: str) -> Result:
    return called(run, "-q", "--clock", "icount", "--timeout", "1s", "-n", program, path)


def test_nops_are_counted(tmp_path: Path) -> None:
    path, alone = guest(tmp_path), tmp_path / "alone.elf"
    assert called(rewrite, path, *ALONE, "-o", alone).exit_code == 0
    program = "app::work:step { @[probeprov, probefunc, probename] = count(); }"
    here, there = traced(path, program), traced(alone, program)
    assert here.stdout.split() == ["app", "work", "step", "3"]
    assert (there.stdout, there.stderr) == (here.stdout, "")


def test_arguments_are_not_recorded(tmp_path: Path) -> None:
    """They are where the note says, of which a record knows nothing."""
    path, alone = guest(tmp_path), tmp_path / "alone.elf"
    assert called(rewrite, path, *ALONE, "--action", "record:rax", "-o", alone).exit_code == 0
    told = traced(alone, "app::work:step { trace(arg0); }")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "the image does not record arg0" in told.stderr
    result = called(rewrite, path, *ALONE, "--action", "record:arg0", "-o", tmp_path / "other.elf")
    assert "only its registers are known, not its arguments" in result.stderr


@pytest.mark.parametrize("words", [(), ("--action", "record:rax")])
def test_what_the_image_turns_on_and_off_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    result = called(rewrite, guest(tmp_path, DATA), *ALONE, *words, "-o", tmp_path / "alone.elf")
    assert result.exit_code == 1
    assert "1 of 1 sites cannot be jumps: 1 a static probe, which the image turns on and off" in result.stderr
