"""The page of --coverage FILE.html says what the tracefile says, and shows no file that is not source."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from kinst.runtime.coverage.document import Block, Coverage, CoveredImage, Function, Granularity
from kinst.runtime.coverage.page import coverage_page, source_text
from tests.commands.in_process import command, kinst_run

ROOT = Path(__file__).parents[3]
_COUNTED = re.compile(r"<[su]> *([\d,]+)  (.*)")


def _counts(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """File, line and count of each line with a count."""
    file, number = "", 0
    for line in lines:
        begun = re.search(r"<details><summary>(\S+) .*?<pre>$", line)
        if begun:
            file, number = begun[1], 0
            continue
        number += 1
        for found in _COUNTED.finditer(line):
            yield file, number, int(found[1].replace(",", ""))


def test_lines_and_functions_are_those_of_lcov(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # the sample's files are named from here
    page, trace, both = tmp_path / "a.html", tmp_path / "a.info", tmp_path / "both.html"
    for output in (page, trace, tmp_path / "a.json"):
        call = ("--coverage", output, "--call", 'hash_bytes(1, "coverage", 8)')
        done = kinst_run("samples/kernel-arm64.elf", "-q", *call)
        assert done.returncode == 0, done.stderr
    lines = page.read_text().replace("\n</s>", "</s>\n").replace("\n</u>", "</u>\n").splitlines()
    wanted, file = dict[tuple[str, int], int](), ""
    for line in trace.read_text().splitlines():
        if line.startswith("SF:"):
            file = line[3:]
        if line.startswith("DA:"):
            at, count = map(int, line[3:].split(","))
            wanted[file, at] = count
    shown = {(file, at): count for file, at, count in _counts(lines)}
    files = {file for file, at in shown}
    assert shown == {key: count for key, count in wanted.items() if key[0] in files}
    assert files == {file for (file, _), count in wanted.items() if count}
    texts = [re.sub(r"</[su]>$", "", text) for line in lines for _, text in _COUNTED.findall(line)]
    assert any("&gt;" in text for text in texts)
    assert [text for text in texts if "<" in text or ">" in text] == []
    done = command("diff", "--sum", tmp_path / "a.json", tmp_path / "a.json", "-o", both)
    assert done.returncode == 0, done.stderr
    assert "<th scope=row>hash_bytes</th><td>2</td>" in both.read_text()


def test_names_are_escaped_and_a_missing_image_is_a_note() -> None:
    one = Function("<script>alert(1)</script>\x1b", 0, 8, 2, 1, 3, 1, (Block(0, 4, 0, 1, 3), Block(4, 4, 1, 1, 0)))
    image = CoveredImage("<img>", "nowhere", "arm64", "", 0, 8, 0, (one,), ())
    page = "\n".join(coverage_page(Coverage(Granularity.BLOCKS, 2, (image,), 0), lambda _image: None))
    assert "<script>alert" not in page
    assert "<img>" not in page
    assert "<td>1 of 2</td><td class=part>50%</td><td>1 of 2</td>" in page
    assert "no lines of source" in unescape(page)


def test_only_source_is_read(tmp_path: Path) -> None:
    for name, content in {"id_rsa": b"key", "a.c": b"int a;\n", "b.c": b"\0", "c.c": b"1" * 100}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "d.c").mkdir()
    found = [source_text(str(tmp_path / name), 50) for name in ("id_rsa", "a.c", "b.c", "c.c", "d.c", "e.c", "f\0.c")]
    assert found == [None, "int a;\n", None, None, None, None, None]


def test_the_report_of_a_run_has_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page, report = tmp_path / "a.html", tmp_path / "report.html"
    words = ("--coverage", page, "--report", report, "--call", 'hash_bytes(1, "coverage", 8)')
    done = kinst_run("samples/kernel-arm64.elf", "-q", *words)
    assert done.returncode == 0, done.stderr
    packed = re.search(r'id="data">(.*?)</script>', report.read_text(), re.DOTALL)
    assert packed is not None
    code = json.loads(zlib.decompress(base64.b64decode(packed[1])))["code"]
    assert "<th scope=row>hash_bytes</th><td>1</td>" in code
    assert "samples/kernel/" in code
    assert code in page.read_text()
    assert ".covered pre u" in report.read_text()
