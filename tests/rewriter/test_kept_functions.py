"""Functions that are kept are those that were found."""

import random
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.kept_functions import keeping
from kinst.rewriter.rewriting import Source, open_source
from kinst.targets.functions.found import Functions
from kinst.targets.image import Image, open_image, open_to_run
from tests.images import real_image

SAMPLE = Path(__file__).parents[2] / "samples/kernel-riscv64.elf"


def _drawn(count: int, seed: int) -> Functions:
    draw = random.Random(seed)
    address = np.cumsum([draw.randrange(1, 1 << 20) for _ in range(count)]).astype(np.uint64) | np.uint64(1 << 63)
    size = np.array([draw.randrange(1, 1 << 63) for _ in range(count)], np.uint64)
    names = tuple(draw.choice(("f", "\udcff", "é", 'a"b', "", "x" * 300)) + str(row) for row in range(count))
    aliases = {row: (names[row] + "'", "o") for row in draw.sample(range(count), count // 9)}
    strict = np.array([(draw.randrange(1 << 64), 5) for _ in range(draw.randrange(3))], np.uint64).reshape(-1, 2)
    return Functions(address, size, np.arange(count).astype(np.uint8), names, aliases, strict)


def _assert_same(one: Functions, other: Functions) -> None:
    for field in fields(Functions):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype and left.shape == right.shape
            assert (left == right).all() and right.flags.writeable == left.flags.writeable
        else:
            assert left == right


def test_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    image, file, calls = open_image(SAMPLE), tmp_path / "file", list[int]()
    for seed in range(2):
        file.write_bytes(bytes([seed]))
        functions = _drawn(5000 + seed, seed)

        def find(_image: Image, functions: Functions = functions) -> Functions:
            calls.append(len(functions))
            return functions

        for how in ("one", "other"):
            for _ in range(2):
                _assert_same(functions, keeping(find, (file, None), how, smallest=0)(image))
        assert len(calls) == 2 * (seed + 1)
    (kept, *_) = (tmp_path / "cache").rglob("*.functions")
    data, before = bytearray(kept.read_bytes()), len(calls)
    for at in (0, 40, len(data) // 2, len(data) - 1):
        damaged = bytearray(data)
        damaged[at] ^= 1
        kept.write_bytes(damaged)
        for how in ("one", "other"):
            _assert_same(functions, keeping(find, (file, None), how, smallest=0)(image))
    kept.write_bytes(b"")
    _assert_same(functions, keeping(find, (file, None), "one", smallest=0)(image))
    assert len(calls) <= before + 5


def test_few_are_not_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = open_source(Source(SAMPLE), read=open_to_run, keeps=True).program
    _assert_same(open_source(Source(SAMPLE)).program.functions, program.functions)
    assert not [*(tmp_path / "cache").rglob("*.functions")]


@pytest.mark.long
@pytest.mark.parametrize("name", ["linux-amd64", "linux-arm64", "linux-riscv64", "xen-amd64"])
def test_those_of_kernels(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = real_image(name)
    fresh = open_source(Source(image)).program.functions
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):
        _assert_same(fresh, open_source(Source(image), read=open_to_run, keeps=True).program.functions)
    assert [*(tmp_path / "cache").rglob("*.functions")]
