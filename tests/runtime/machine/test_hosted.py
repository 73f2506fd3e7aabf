"""Programs for an operating system are told from kernels, before they are run on a bare machine."""

import struct
from pathlib import Path

import pytest

from kinst.runtime.machine.loading.hosted import refuse_program
from kinst.targets.errors import MachineError
from kinst.targets.image import open_image
from tests.runtime.test_command_line import kinst_run
from tests.writers.elf import EM_RISCV, PT_GNU_STACK, Part, elf64

PT_INTERP, PT_NOTE = 3, 4
TEXT = 0x8000_0000
SPARE = 0x40 + 56  # the program header behind that of the only part


def abi_tag(system: int) -> bytes:
    return struct.pack("<III4sIIII", 4, 16, 1, b"GNU", system, 4, 15, 0)


def image(folder: Path, kind: int, content: bytes) -> Path:
    """A file whose spare program header is of that kind, and says where `content` is."""
    data = bytearray(elf64(EM_RISCV, TEXT, [Part(".text", TEXT, content, 5)]))
    assert struct.unpack_from("<I", data, SPARE)[0] == PT_GNU_STACK
    struct.pack_into("<IIQQQQQQ", data, SPARE, kind, 4, data.index(content), TEXT, TEXT, *[len(content)] * 2, 4)
    path = folder / "image.elf"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        (PT_INTERP, b"/lib/ld-linux-riscv64-lp64d.so.1\0", "started by /lib/ld-linux-riscv64-lp64d.so.1"),
        (PT_INTERP, b"/libexec/ld-elf.so.1\0", "started by /libexec/ld-elf.so.1"),
        (PT_NOTE, abi_tag(0), "made for Linux"),
    ],
)
def test_a_program_is_refused(tmp_path: Path, kind: int, content: bytes, why: str) -> None:
    path = image(tmp_path, kind, content)
    with pytest.raises(MachineError, match=f"a program, {why}, and no kernel or firmware"):
        refuse_program(open_image(path))


@pytest.mark.parametrize(("kind", "content"), [(PT_INTERP, b"/red/herring\0"), (PT_NOTE, abi_tag(1))])
def test_a_kernel_is_not(tmp_path: Path, kind: int, content: bytes) -> None:
    refuse_program(open_image(image(tmp_path, kind, content)))


def test_kinst_run_says_so_before_anything_runs(tmp_path: Path) -> None:
    path = image(tmp_path, PT_NOTE, abi_tag(0))
    assert kinst_run(path, "-l").exit_code == 0  # what it has can be listed all the same
    result = kinst_run(path, "-q", "-n", "BEGIN, END { trace(1); }")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "run it in a Linux guest" in result.stderr
