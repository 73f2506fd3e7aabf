"""Names that an image does not have: given to a command, taken along by a patched image, and wrong ones explained."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kinst.targets.elf.symbols import STT_FUNC
from kinst.targets.image import open_image
from tests.commands.in_process import command, kinst_run
from tests.images import at_hand, real_image

SAMPLES = Path(__file__).parent.parent.parent / "samples"
SAMPLE = SAMPLES / "kernel-amd64.elf"
PROGRAM = "fbt::kmalloc:entry /arg0 > 100000/ { @[stack(2), func(caller), probefunc] = count(); }"
STACK = ["kmalloc", "rpc_read+0x27", "rpc_read"]


@pytest.fixture
def stripped(tmp_path: Path) -> Path:
    """The sample without sections: without names, types and debug information."""
    data = bytearray(SAMPLE.read_bytes())
    struct.pack_into("<Q", data, 0x28, 0)
    struct.pack_into("<HHH", data, 0x3A, 0, 0, 0)
    path = tmp_path / "stripped.elf"
    path.write_bytes(data)
    return path


@pytest.fixture(params=["System.map", "nm -S", "ELF"])
def names(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The names of the sample, in each form."""
    if request.param == "ELF":
        return SAMPLE
    symbols = open_image(SAMPLE).symbols
    lines = []
    texts = symbols.names(np.arange(len(symbols)))
    for row, name in enumerate(texts):
        size = f" {int(symbols.size[row]):016x}" if request.param == "nm -S" and symbols.size[row] else ""
        if symbols.kind[row] == STT_FUNC:
            lines.append(f"{int(symbols.address[row]):016x}{size} T {name}")
    path = tmp_path / "names"
    path.write_text("\n".join(lines) + "\n")
    return path


def seen(*arguments: str | Path) -> list[str]:
    """What the aggregation has after the module, word by word."""
    result = kinst_run(*arguments, "--console", "/dev/null")
    assert result.returncode == 0, result.stderr
    return [word.split("`")[1] for word in result.stdout.split() if "`" in word]


def test_a_run_takes_names_and_a_patched_image_brings_them(stripped: Path, names: Path, tmp_path: Path) -> None:
    assert seen(stripped, "--symbols", names, "-n", PROGRAM) == STACK
    patched = tmp_path / "p.elf"
    made = command("rewrite", stripped, "--symbols", names, "--name", "my-kernel", "-p", "fbt::kmalloc:", "-o", patched)
    assert made.returncode == 0, made.stderr
    assert seen(patched, "-n", PROGRAM) == STACK
    assert seen(patched, "-n", PROGRAM.replace("::", ":my-kernel:")) == STACK
    assert "my-kernel                           kmalloc entry" in command("list_probes", patched).stdout
    assert kinst_run(patched, "--call", "fibonacci(9)").stdout == "\nfibonacci(9) = 0x22\n"
    again = tmp_path / "again.elf"
    command("rewrite", patched, "--symbols", names, "-p", "fbt::kfree:", "-o", again)
    assert again.stat().st_size - patched.stat().st_size < 4096, "the same names were added once more"
    assert command("rewrite", again, "--restore", "-o", tmp_path / "o.elf").returncode == 0
    assert (tmp_path / "o.elf").read_bytes() == stripped.read_bytes()


def test_names_of_another_image_are_refused(stripped: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "names"
    wrong.write_text("0000000000001000 T main\n")
    result = kinst_run(stripped, "--symbols", wrong, "-n", "fbt:::entry")
    assert result.returncode == 1 and "symbols of another image" in result.stderr
    assert kinst_run(stripped, "--symbols", tmp_path / "none", "-n", "BEGIN").returncode == 1


@pytest.mark.parametrize("module", ["kernel-amd64", "kernel_amd64", "kernel", "kernel?amd*", ""])
def test_an_image_is_a_module(module: str) -> None:
    texts = (f"fbt:{module}:kmalloc:entry", f"callout_execute:{module}::callout_end", f"kinst:{module}:kmalloc:0")
    result = kinst_run("-e", SAMPLE, *(word for text in texts for word in ("-n", f"{text} {{}}")))
    assert [f"description '{text} ' matched 1 probe" in result.stderr for text in texts] == [True] * 3
    assert len(command("list_probes", SAMPLE, *texts).stdout.splitlines()) == 4  # with a heading


def test_the_user_names_the_module() -> None:
    assert kinst_run("-e", SAMPLE, "--name", "my.kernel-2", "-n", "fbt:my.kernel-2:kmalloc:entry {}").returncode == 0
    assert "my.kernel-2" in command("list_probes", SAMPLE, "--name", "my.kernel-2", "fbt::kmalloc:").stdout
    for wrong in ("a:b", "a*", "a b", ""):
        assert "--name" in (result := kinst_run("-e", SAMPLE, "--name", wrong, "-n", "BEGIN")).stderr
        assert result.returncode == 2


@pytest.mark.parametrize(
    ("description", "why"),
    [
        ("fbt:foo:kmalloc:entry", "no module 'foo': this image is 'kernel-amd64'"),
        (":foo:kmalloc:entry", "no module 'foo': this image is 'kernel-amd64'"),
        ("::kmaloc:entry", "no function 'kmaloc' in kernel-amd64; the nearest are kmalloc"),
        ("fbt::v2_limits:entry", "v2_limits is inlined: it has no code of its own; kinst::v2_limits:entry"),
        ("::v2_limits:return", "v2_limits is inlined: it has no code of its own; kinst::v2_limits:entry"),
        ("kinst::v2_limits:3", "v2_limits is inlined: its copies have no offsets of their own; kinst::v2_limits:entry"),
        ("fbx::f:entry", "no provider 'fbx': did you mean fbt?"),
        ("callout_exec:::", "no provider 'callout_exec': did you mean callout_execute?"),
        ("vax:::x", "no provider 'vax': there are callout_execute, dtrace, fbt, kinst, profile, sdt"),
    ],
)
def test_a_description_that_matches_nothing_says_why(description: str, why: str) -> None:
    result = kinst_run("-e", SAMPLE, "-n", f"{description} {{}}")
    assert result.returncode == 1 and f"does not match any probes: {why}" in result.stderr
    listed = kinst_run("-l", SAMPLE, "-n", description)
    assert f"No probe matches description: {why}" in listed.stderr


def test_names_for_a_stripped_firmware_come_from_a_file(tmp_path: Path) -> None:
    if not at_hand("opensbi-1.6"):
        pytest.skip("no OpenSBI in the cache")
    path = tmp_path / "names"
    path.write_text("0000000000014c3e T fdt_next_tag\n")
    image = real_image("opensbi-1.6")
    assert "fdt_next_tag entry" in kinst_run("-l", image, "--symbols", path, "-n", "fbt::fdt_next_tag:entry").stdout
