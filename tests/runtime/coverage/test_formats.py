"""What is written of coverage, read again by somebody else's rules: drcov's format as published, lcov's, JSON."""

import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kinst.runtime.coverage.json_format import coverage_of, json_lines, read_coverage
from kinst.targets.errors import ImageError
from tests.commands.in_process import kinst_run

SAMPLES = Path(__file__).parents[3] / "samples"
CALL = 'hash_bytes(1, "coverage", 8)'


def written(file: Path, *options: str, arch: str = "arm64") -> Path:
    done = kinst_run(SAMPLES / f"kernel-{arch}.elf", "-q", "--coverage", file, "--call", CALL, *options)
    assert done.returncode == 0, done.stderr
    return file


def read_drcov(content: bytes) -> tuple[list[dict[str, str]], list[tuple[int, int, int]]]:
    """Modules, and blocks as offset, size and module: by drcov's documentation, not by our writer."""
    lines, at = list[str](), 0
    while not lines or not lines[-1].startswith("BB Table"):
        end = content.index(b"\n", at)
        lines.append(content[at:end].decode())
        at = end + 1
    assert lines[0] == "DRCOV VERSION: 2"
    assert lines[1].startswith("DRCOV FLAVOR: ")
    head = re.fullmatch(r"Module Table: version 2, count (\d+)", lines[2])
    columns = lines[3].removeprefix("Columns: ").split(", ")
    assert head is not None
    rows = [dict(zip(columns, re.split(r", *", line.strip()), strict=True)) for line in lines[4:-1]]
    assert [int(row["id"]) for row in rows] == [*range(int(head[1]))]
    count = re.fullmatch(r"BB Table: (\d+) bbs", lines[-1])
    assert count is not None
    assert len(content) - at == 8 * int(count[1])
    return rows, list(struct.iter_unpack("<IHH", content[at:]))


@pytest.mark.parametrize("of", ["functions", "blocks", "instructions"])
def test_drcov_has_what_json_says_ran(of: str, tmp_path: Path) -> None:
    image = read_coverage(written(tmp_path / "a.json", "--coverage-of", of)).images[0]
    modules, blocks = read_drcov(written(tmp_path / "a.drcov", "--coverage-of", of).read_bytes())
    base = int(modules[0]["base"], 16)
    found = {(base + offset, size) for offset, size, module in blocks if module == 0}
    listed = {(one.address + b.offset, b.size) for one in image.ran for b in one.blocks if b.runs}
    assert found == (listed or {(one.address, one.size) for one in image.ran})
    assert Path(modules[0]["path"]).name == "kernel-arm64.elf"


@pytest.mark.turns
@pytest.mark.parametrize("arch", ["amd64", "arm64", "riscv64"])
def test_lines_are_those_of_addr2line(arch: str, tmp_path: Path) -> None:
    """Each instruction that ran has its line among those that ran, by binutils' reader of the line programs."""
    if (tool := shutil.which("addr2line")) is None:
        pytest.skip("addr2line is missing")
    image = read_coverage(written(tmp_path / "a.json", "--coverage-of", "instructions", arch=arch)).images[0]
    ran = {one.address + block.offset: block.runs for one in image.ran for block in one.blocks if block.runs}
    words = [tool, "-e", str(SAMPLES / f"kernel-{arch}.elf"), *map(hex, ran)]
    places = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted: dict[tuple[str, int], int] = {}
    for place, runs in zip(places, ran.values(), strict=True):
        path, line = re.sub(r" \(discriminator.*", "", place).rsplit(":", 1)
        wanted[Path(path).name, int(line)] = max(runs, wanted.get((Path(path).name, int(line)), 0))
    assert {key: count for key, count in lines_of(written(tmp_path / "a.info", arch=arch)).items() if count} == wanted


def lines_of(tracefile: Path) -> dict[tuple[str, int], int]:
    """The counts of lines: by geninfo(1)."""
    found: dict[tuple[str, int], int] = {}
    name = ""
    for text in tracefile.read_text().splitlines():
        kind, _, value = text.partition(":")
        if kind == "SF":
            name = Path(value).name
        elif kind == "DA":
            line, count = map(int, value.split(","))
            found[name, line] = max(count, found.get((name, line), 0))
    return found


def test_json_is_read_as_it_was_written(tmp_path: Path) -> None:
    content = written(tmp_path / "a.json").read_text()
    assert "\n".join(json_lines(coverage_of(content.encode(), "it"))) + "\n" == content


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('"version": 1', '"version": 2', "its version is 2, and this reads 1"),
        ('"of": "blocks"', '"of": "lines"', "of 'lines'"),
        ('"runs": 1', '"runs": -1', "-1 is no number"),
        ('"functions": [', '"functions": [{}', "not JSON"),
        ('"path": ', '"way": ', "a part is missing"),
        ('"blocks": [[0, ', '"blocks": [[4, ', "the blocks of"),
        ('"size": ', '"size": 99999', "overlaps"),
    ],
)
def test_a_file_that_lies_is_refused(before: str, after: str, why: str, tmp_path: Path) -> None:
    content = written(tmp_path / "a.json").read_text()
    assert before in content
    with pytest.raises(ImageError, match=why):
        coverage_of(content.replace(before, after).encode(), "it")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--coverage", "a.txt"), "a name that ends with one of .info, .drcov, .json"),
        (("--coverage", "a.json", "--on", "qemu", "-n", "BEGIN"), "under --on it is of a run without programs"),
        (("--coverage", "a.json", "--method", "jump", "-n", "fbt:::entry"), "not with --method jump"),
        (("--coverage-format", "lcov"), "is for --coverage FILE"),
    ],
)
def test_what_is_not_possible_is_one_line(words: tuple[Any, ...], why: str) -> None:
    done = kinst_run(SAMPLES / "kernel-arm64.elf", *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert why in done.stderr
