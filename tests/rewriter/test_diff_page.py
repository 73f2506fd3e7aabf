"""kinst-diff --format html: a page that has all that the difference is, and can be used."""

import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import diff, rewrite
from kinst.targets.image import open_image
from kinst.targets.instruction import Verdict
from kinst.targets.manifest.packed import find_manifest, pack_manifest
from tests.chromium import used
from tests.samples.machines import MACHINES
from tests.writers.elf import EM_RISCV, Part, Symbol, elf64
from tests.writers.manifests import with_manifest

SAMPLES = Path(__file__).parents[2] / "samples"
VERDICTS = {"COPY": "trampoline", "EMULATE": "emulated", "DEFER": "deferred"}


def patched(folder: Path, machine: str = "amd64", *options: str) -> tuple[Path, Path]:
    original, made = SAMPLES / f"kernel-{machine}.elf", folder / "p.elf"
    arguments = [str(original), *(options or ("--probe", "fbt:::")), "-o", str(made)]
    result = CliRunner().invoke(rewrite, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return original, made


def kinst_diff(*arguments: str | Path) -> Result:
    return CliRunner().invoke(diff, list(map(str, arguments)), catch_exceptions=False)


def page(pair: tuple[Path, Path], status: int = 0) -> Path:
    path = pair[1].with_name("page.html")
    result = kinst_diff("--format", "html", *pair, "-o", path)
    assert (result.exit_code, result.stdout) == (status, "")
    return path


def data(path: Path) -> Any:
    found = re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def told(pair: tuple[Path, Path]) -> Any:
    return json.loads(kinst_diff("--format", "json", "--verbose", *pair).stdout)


STANDALONE = ("--probe", "fbt:::entry", *MACHINES["amd64"].alone)


@pytest.mark.parametrize(
    ("machine", "options"), [("amd64", ()), ("arm64", ()), ("riscv64", ()), ("amd64", STANDALONE)], ids=str
)
def test_the_page_says_of_each_site_what_the_json_says(machine: str, options: tuple[str, ...], tmp_path: Path) -> None:
    pair = patched(tmp_path, machine, *options)
    found, sites = data(page(pair)), told(pair)["sites"]
    texts = found["texts"]
    assert len(found["sites"]) == len(sites) > 80
    assert found["back"] is not bool(options)
    for row, site in zip(found["sites"], sites, strict=True):
        function, address, verdict, trampoline, place, lines, elsewhere = row
        name, start = found["functions"][function]
        assert int(address, 16) == site["address"]
        assert f"{name}+{site['address'] - int(start, 16)}" == site["site"]
        offset, before, text, after, after_text = lines[place]
        assert (offset, texts[before], texts[text]) == (0, site["before"], site["instruction"])
        assert texts[after_text].partition("; ")[0] == site["breakpoint"].partition("; ")[0]
        assert len(texts[after]) == len(texts[before])
        assert "; ".join(texts[line[1]] for line in elsewhere) == site["trampoline_code"]
        assert options or texts[verdict] == VERDICTS[site["verdict"]]
        assert not trampoline or int(trampoline, 16) == site["trampoline"]


def test_the_neighbours_of_a_site_are_instructions_of_both_files(tmp_path: Path) -> None:
    pair = patched(tmp_path, "amd64", "--probe", "kinst::vfs_read:")
    found = data(page(pair))
    sites = {int(row[1], 16): row for row in found["sites"]}
    for address, row in sites.items():
        lines = row[5]
        assert [one for one in lines if one[0] == 0] == [lines[row[4]]]
        for line, following in pairwise(lines):
            assert following[0] - line[0] == len(bytes.fromhex(found["texts"][line[1]]))
        for line in lines:
            assert (len(line) > 3) is (address + line[0] in sites)  # what changed is a site itself


def test_a_site_that_capstone_does_not_know_differs_from_what_stands_there_now(tmp_path: Path) -> None:
    """hfence.gvma of RISC-V's H extension begins with the two bytes of the breakpoint that is written over it."""
    code = bytes.fromhex("73000062 8280")
    original = tmp_path / "hypervisor.elf"
    part = Part(".text", 0x80000000, code, 5)
    original.write_bytes(elf64(EM_RISCV, part.address, [part], [Symbol("fence", part.address, len(code))]))
    made = tmp_path / "p.elf"
    result = CliRunner().invoke(rewrite, [str(original), "--probe", "kinst::fence:0", "-o", str(made)])
    assert result.exit_code == 0, result.stderr

    found = data(page((original, made)))
    (site,) = found["sites"]
    address, *texts = site[5][site[4]]

    assert (address, [found["texts"][one] for one in texts]) == (
        0,
        ["73 00 00 62", ".insn 0x62000073", "73 00 10 00", "ebreak"],
    )


def test_a_difference_that_nothing_explains_is_on_the_page(tmp_path: Path) -> None:
    original, made = patched(tmp_path)
    content = bytearray(made.read_bytes())
    content[0x2345] ^= 0xFF
    made.write_bytes(content)
    text = page((original, made), status=1).read_text()
    assert '<strong class="bad">1 difference unexplained</strong>' in text
    assert "<tr class=bad><th scope=row>UNEXPLAINED</th><td>0x2345 " in text


def test_what_a_forged_manifest_claims_is_on_the_page_as_unexplained(tmp_path: Path) -> None:
    original, made = patched(tmp_path)
    image = open_image(made)
    manifest = find_manifest(image)
    assert manifest is not None
    sites = manifest.sites.copy()
    sites["kind"][1], sites["verdict"][2], sites["size"][3] = 3, Verdict.EMULATE, 1
    made.write_bytes(with_manifest(made, pack_manifest(replace(manifest, sites=sites))))
    path = page((original, made), status=1)
    assert "the manifest describes another instruction" in path.read_text()
    assert len(data(path)["sites"]) == len(sites)


def test_identical_files_have_a_page_without_sites(tmp_path: Path) -> None:
    original = SAMPLES / "kernel-amd64.elf"
    path = tmp_path / "page.html"
    assert kinst_diff("--format", "html", original, original, "-o", path).exit_code == 0
    assert "the files are identical" in path.read_text()
    assert data(path)["sites"] == []


def test_nothing_comes_from_elsewhere_and_names_are_no_markup(tmp_path: Path) -> None:
    original, made = patched(tmp_path, "riscv64", "--probe", "fbt::vfs_read:entry", "--patch", "vfs_report = nop")
    renamed = made.rename(made.with_name("a<b>&.elf"))
    text = kinst_diff("--format", "html", original, renamed).stdout
    assert "a&lt;b&gt;&amp;.elf" in text and "a<b>" not in text
    assert not re.search(r"https?:|@import|\bsrc=|url\(", text)
    assert "<th scope=row>patch</th>" in text


def test_the_output_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    pair = patched(tmp_path)
    out = tmp_path / "out"
    out.write_text("old")
    assert kinst_diff(*pair, "-o", out).exit_code == 0
    assert out.read_text() == kinst_diff(*pair).stdout
    result = kinst_diff(*pair, "-o", tmp_path / "none" / "out")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


@pytest.mark.long
def test_a_reader_filters_walks_and_follows_links_among_thousands_of_sites(tmp_path: Path) -> None:
    path = page(patched(tmp_path, "amd64", "--probe", "kinst:::"))
    script = """
      const found = {}, list = document.getElementById("sites"), filter = document.getElementById("filter");
      const rows = () => [...list.querySelectorAll(".row")], chosen = () => list.querySelector("[aria-selected=true]");
      const detail = () => document.getElementById("detail").textContent;
      found.drawn = rows().length;
      found.all = Number(rows()[0].getAttribute("aria-setsize"));
      list.scrollTop = list.scrollHeight;
      list.dispatchEvent(new Event("scroll"));  // which comes with a frame, and without a screen there is none
      found.last = rows().some(row => Number(row.getAttribute("aria-posinset")) === found.all);
      found.few = rows().length;
      list.focus();
      key("Home");
      key("ArrowDown");
      found.second = Number(chosen().getAttribute("aria-posinset"));
      type(filter, "vfs_read ret");
      await settled();
      found.filtered = rows().every(row => row.textContent.includes("vfs_read+"));
      found.functions = document.querySelectorAll("#functions .row").length < 6;
      found.status = document.getElementById("shown").textContent;
      type(filter, "vfs_read+0");
      await settled();
      found.detail = detail().startsWith("vfs_read+0");
      key("t", list);
      await settled();
      found.trampoline = location.hash.startsWith("#trampoline=0x") && chosen().textContent.endsWith("vfs_read+0");
      chosen().querySelector("a").click();
      await settled(); await settled();
      found.back = location.hash.startsWith("#site=0x") && chosen().textContent.includes("vfs_read+0");
      key("d", list);
      found.dark = getComputedStyle(document.body).backgroundColor;
      key("3", list);
      found.changes = getComputedStyle(document.getElementById("view-changes")).display;
      found.wide = document.documentElement.scrollWidth <= innerWidth;
      return found;
    """
    found = used(path, script, ready="document.documentElement.dataset.ready")
    status, count = found.pop("status"), found.pop("all")
    assert count > 2000
    assert found.pop("drawn") < 80
    assert found.pop("few") < 80
    assert re.fullmatch(rf"\d+ of {count:,}", status)
    assert found == {
        "last": True,
        "second": 2,
        "filtered": True,
        "functions": True,
        "detail": True,
        "trampoline": True,
        "back": True,
        "dark": "rgb(21, 24, 28)",
        "changes": "block",
        "wide": True,
    }
