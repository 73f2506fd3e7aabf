"""What boot loaders are given: the ELF file in it is found, and patched as if it had been given itself."""

import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import diff, rewrite
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image
from kinst.targets.packed.unpacking import unpacked
from tests.samples.machines import MACHINES
from tests.writers.boot_images import COMPRESSIONS, bzimage, compressed, zboot

SAMPLE = MACHINES["amd64"].image


def inner(data: bytes) -> tuple[bytes, str]:
    found = unpacked(np.frombuffer(data, np.uint8))
    return found.data.tobytes(), found.packing


@pytest.mark.parametrize("how", COMPRESSIONS)
def test_what_is_packed_is_found(how: str) -> None:
    elf = SAMPLE.read_bytes()
    packed = compressed(elf, how)
    assert inner(packed) == (elf, how)
    assert inner(bzimage(packed)) == (elf, f"bzImage, {how}")
    assert inner(zboot(packed, how)) == (elf, f"EFI zboot, {how}")
    assert inner(compressed(zboot(packed, how), "gzip")) == (elf, f"gzip, EFI zboot, {how}")


def test_an_elf_file_and_anything_else_is_left_as_it_is() -> None:
    for data in (SAMPLE.read_bytes(), b"", b"MZ" + bytes(1000), bytes(700)):
        assert inner(data) == (data, "")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bzimage(b"\xfd7zXZ\0", version=0x207), "boot protocol 2.7, older than 2.8"),
        (bzimage(b"\x89LZO\0" + bytes(100)), "compressed in a way that is not known"),
        (bzimage(b""), "boots as a bzImage but has no Linux in it"),
        (bzimage(compressed(b"\x7fELF" * 999, "xz"))[:-140], "truncated: the kernel in this bzImage has"),
        (zboot(b"\x89LZO\0" + bytes(100), "lzo"), "compressed with 'lzo', which is not known"),
        (compressed(b"\x7fELF" * 999, "gzip")[:-9], "ends in the middle"),
    ],
)
def test_what_cannot_be_unpacked_says_why(data: bytes, why: str) -> None:
    with pytest.raises(ImageError, match=why):
        inner(data)


@pytest.mark.parametrize("how", COMPRESSIONS)
def test_content_that_is_too_large_is_refused(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinst.targets.packed.boot_image.LARGEST", 1 << 20)
    with pytest.raises(ImageError, match="more than 1 MiB when it is decompressed"):
        inner(compressed(bytes((1 << 20) + 1), how))
    assert len(inner(compressed(bytes(1 << 20), how))[0]) == 1 << 20


@pytest.mark.parametrize("how", COMPRESSIONS)
def test_damage_is_one_error(how: str) -> None:
    whole, rng = bzimage(compressed(SAMPLE.read_bytes()[:20_000], how)), random.Random(how)
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            damaged[rng.randrange(0x1F0, len(whole))] = rng.randrange(256)
        try:
            inner(bytes(damaged))
        except ImageError as error:
            assert "\n" not in str(error)


def test_what_is_rewritten_is_the_elf_file_in_it(tmp_path: Path) -> None:
    kernel, plain = tmp_path / "vmlinuz", tmp_path / "plain"
    kernel.write_bytes(bzimage(compressed(SAMPLE.read_bytes(), "xz")))
    plain.write_bytes(SAMPLE.read_bytes())
    outs = []
    for image in (kernel, plain):
        outs.append(tmp_path / f"{image.name}.out")
        words = [str(image), "--name", "kernel", "-q", "--probe", "fbt::vfs_*:entry", "-o", str(outs[-1])]
        result = CliRunner().invoke(rewrite, words)
        assert result.exit_code == 0, result.stderr
        told = "vmlinuz: bzImage, xz: the ELF file in it was patched, and is written\n"
        assert result.stderr.endswith(told) == (image == kernel)
    assert outs[0].read_bytes() == outs[1].read_bytes()
    result = CliRunner().invoke(diff, [str(kernel), str(outs[0])])
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "every difference is explained")
    result = CliRunner().invoke(rewrite, [str(outs[0]), "--restore", "-o", str(tmp_path / "back")])
    assert result.exit_code == 0
    assert (tmp_path / "back").read_bytes() == SAMPLE.read_bytes()
    assert open_image(kernel).packing == "bzImage, xz"
