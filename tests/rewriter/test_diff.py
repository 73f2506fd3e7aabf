"""The difference of two images: what a rewriting did is explained, a byte changed by hand is found anywhere."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard

from kinst.rewriter.diffing.diff import Diff, compare
from kinst.rewriter.diffing.diff_report import json_lines, text_lines
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.write import write_image
from kinst.targets.errors import ImageError, KinstError
from kinst.targets.image import open_image
from kinst.targets.instruction import Flow
from kinst.targets.manifest import tables as manifest_tables
from kinst.targets.manifest.packed import find_manifest, pack_manifest
from kinst.targets.manifest.seal import opened, sealed
from kinst.targets.probe import parse_probe_names
from tests.rewriter.programs import small
from tests.writers.manifests import with_manifest

ROOT = Path(__file__).parent.parent.parent


def patch(path: Path, out: Path, *specs: str, symbols: bool = False) -> None:
    names = [name for spec in specs for name in parse_probe_names(spec)]
    write_image(plan_probes(open_source(Source(path)), names)[1], out, trampoline_symbols=symbols)


def difference(original: Path, patched: Path) -> Diff:
    return compare(open_image(original), open_image(patched))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    original, patched = small().write(folder), folder / "p.elf"
    patch(original, patched, "kinst::vm_fault:", "fbt:::entry")
    return original, patched


@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
@pytest.mark.parametrize("symbols", [False, True], ids=["", "symbols"])
def test_all_that_a_rewriting_does_is_explained(machine: str, symbols: bool, tmp_path: Path) -> None:  # noqa: FBT001
    original, patched = ROOT / "samples" / f"kernel-{machine}.elf", tmp_path / "p.elf"
    patch(original, patched, "*:::", symbols=symbols)
    found = difference(original, patched)
    assert found.is_explained and not found.unexplained
    lines = list(text_lines(found))
    assert lines[-1] == "every difference is explained"
    for what in (
        "ELF header",
        "program header",
        "sites",
        "trampolines",
        "manifest",
        "section names",
        "section headers",
    ):
        assert any(line.startswith(what) for line in lines), what


@pytest.mark.parametrize("spare", [True, False])
def test_moved_headers_and_several_steps_are_explained(spare: bool, tmp_path: Path) -> None:  # noqa: FBT001
    original, patched = small(spare_header=spare).write(tmp_path), tmp_path / "p.elf"
    patch(original, patched, "fbt:::entry")
    patch(patched, patched, "kinst:::")
    assert difference(original, patched).is_explained


def test_identical_files_have_no_difference(tmp_path: Path) -> None:
    original = small().write(tmp_path)
    found = difference(original, small().write(tmp_path, "same.elf"))
    assert found.is_explained and list(text_lines(found)) == ["the files are identical, and not patched"]


def test_without_a_manifest_nothing_is_explained(tmp_path: Path) -> None:
    original = small().write(tmp_path)
    data = bytearray(original.read_bytes())
    data[0x1000] ^= 1
    (tmp_path / "other.elf").write_bytes(data)
    found = difference(original, tmp_path / "other.elf")
    assert not found.is_explained and found.unexplained[0].offset == 0x1000


def test_a_byte_flipped_anywhere_is_found(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Bytes all over the file: what cannot be read any more is an error, all else is unexplained."""
    original, patched = pair
    data = patched.read_bytes()
    wrong = tmp_path / "wrong.elf"
    offsets = {*range(64), *range(64, len(data), 333), len(data) - 1}
    unread = 0
    for offset in sorted(offsets):
        broken = bytearray(data)
        broken[offset] ^= 0x04
        wrong.write_bytes(broken)
        try:
            found = difference(original, wrong)
        except KinstError:
            unread += 1
            continue
        assert not found.is_explained, f"a change at {offset:#x} was explained"
        assert "every difference is explained" not in list(text_lines(found))
    assert unread < 60, "most damage must be located, not only refused"


@pytest.mark.parametrize(
    ("find", "where"),
    [
        (lambda image, manifest: image.offset_of(int(manifest.sites["address"][3])), "vm_fault+10"),
        (lambda image, manifest: image.offset_of(int(manifest.sites["address"][3])) + 1, "vm_fault+11"),
        (lambda image, manifest: image.offset_of(int(manifest.sites["trampoline"][1])) + 1, "trampoline of vm_fault+5"),
        (lambda image, manifest: image.section(".kinst.text").offset + 0xF00, "unused trampoline"),
        (lambda image, manifest: image.section(".data").offset + 5, ".data+0x5"),
        (lambda image, manifest: 0x40 + 56, "program header 1"),
        (lambda image, manifest: 24, "ELF header"),
        (lambda image, manifest: image.header.shoff + 64 * 2 + 48, "section headers"),
    ],
)
def test_a_change_is_named_by_its_place(find: object, where: str, pair: tuple[Path, Path], tmp_path: Path) -> None:
    original, patched = pair
    image = open_image(patched)
    offset = find(image, find_manifest(image))  # type: ignore[operator]
    data = bytearray(patched.read_bytes())
    data[offset] ^= 1
    (tmp_path / "wrong.elf").write_bytes(data)
    found = difference(original, tmp_path / "wrong.elf")
    assert [one.where.split(" (")[0] for one in found.unexplained] == [where]
    assert found.unexplained[0].offset == offset
    assert any(line.startswith(f"UNEXPLAINED      {offset:#x} {where}") for line in text_lines(found))


def test_a_wrong_trampoline_is_found_though_the_manifest_is_sound(pair: tuple[Path, Path], tmp_path: Path) -> None:
    original, patched = pair
    image = open_image(patched)
    manifest = find_manifest(image)
    assert manifest is not None
    slot = image.offset_of(int(manifest.sites["trampoline"][2]))
    data = bytearray(patched.read_bytes())
    assert slot is not None
    data[slot : slot + 3] = b"\x0f\x05\x90"  # a syscall instead of the displaced instruction
    (tmp_path / "wrong.elf").write_bytes(data)
    found = difference(original, tmp_path / "wrong.elf")
    assert "trampoline of" in found.unexplained[0].where
    assert found.unexplained[0].found.startswith(b"\x0f\x05")


def test_a_forged_manifest_is_not_believed(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Its checksum is right, but it claims another instruction at a site, or another kind."""
    original, patched = pair
    image = open_image(patched)
    manifest = find_manifest(image)
    assert manifest is not None
    for field, value in (("original", b"\x90"), ("kind", 3), ("flow", Flow.STOP)):
        sites = manifest.sites.copy()
        sites[field][1] = value
        forged = pack_manifest(replace(manifest, sites=sites))
        (tmp_path / "forged.elf").write_bytes(with_manifest(patched, forged))
        found = difference(original, tmp_path / "forged.elf")
        assert any("the manifest describes another instruction" in one.text for one in found.unexplained), field


def test_how_a_manifest_is_compressed_does_not_matter(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of zstd does it differently. What it says must be the same, and nothing else may be there."""
    original, _ = pair
    out = tmp_path / "again.elf"
    with monkeypatch.context() as patch:
        patch.setattr(manifest_tables, "zstd_frame", zstandard.ZstdCompressor(level=-100).compress)
        write_image(plan_probes(open_source(Source(original)), parse_probe_names("kinst:::"))[1], out)
    found = difference(original, out)
    assert found.is_explained and found.manifest is not None
    section = open_image(out).section(".kinst.manifest")
    assert section is not None
    said = out.read_bytes()[section.offset : section.offset + section.size]
    assert said != pack_manifest(found.manifest)
    head, body = opened(memoryview(said))
    other = bytes(head).replace(b'"arch":', b'"arch": ').removesuffix(b" ")
    assert len(other) == len(head)
    out.write_bytes(with_manifest(out, b"".join(sealed(memoryview(other), body))))
    assert "manifest" in [one.where for one in difference(original, out).unexplained]


def test_a_damaged_manifest_is_reported_and_the_rest_is_counted(pair: tuple[Path, Path], tmp_path: Path) -> None:
    original, patched = pair
    section = open_image(patched).section(".kinst.manifest")
    assert section is not None
    data = bytearray(patched.read_bytes())
    data[section.offset + 100] ^= 1
    (tmp_path / "wrong.elf").write_bytes(data)
    found = difference(original, tmp_path / "wrong.elf")
    assert found.unexplained[0].where == "manifest" and "damaged" in found.unexplained[0].text
    assert found.unexplained_count > 1


def test_more_or_fewer_bytes_than_there_should_be_are_found(pair: tuple[Path, Path], tmp_path: Path) -> None:
    original, patched = pair
    (tmp_path / "longer.elf").write_bytes(patched.read_bytes() + b"x")
    found = difference(original, tmp_path / "longer.elf")
    assert not found.is_explained and found.unexplained[-1].where == "end of the file"


def test_another_original_is_an_error(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = small(functions={"f": "nop; ret"}).write(tmp_path)
    with pytest.raises(ImageError, match="was not made from"):
        difference(other, pair[1])


def test_the_two_in_the_wrong_order_are_an_error(pair: tuple[Path, Path]) -> None:
    original, patched = map(open_image, pair)
    with pytest.raises(ImageError, match=r"is not patched, and .* is: the original comes first"):
        compare(patched, original)


def test_verbose_shows_each_site_before_and_after(pair: tuple[Path, Path]) -> None:
    found = difference(*pair)
    lines = list(text_lines(found, verbose=True))
    assert any(
        "vm_fault+4: 55 pushq %rbp -> cc int3; trampoline 0xffffffffbffe0000: pushq %rbp" in line for line in lines
    ), lines
    assert any("vm_fault+8: 74 04 je" in line and line.endswith("emulated") for line in lines)
    value = json.loads("\n".join(json_lines(found, verbose=True)))
    assert value["explained"] and len(value["sites"]) == len(found.manifest.sites)  # type: ignore[union-attr]
    assert {change["what"] for change in value["changes"]} >= {"ELF header", "sites", "trampolines", "manifest"}


def test_a_million_differences_are_counted_and_a_few_described(tmp_path: Path) -> None:
    original = small().write(tmp_path)
    padded = original.read_bytes() + bytes(40_000_000)
    original.write_bytes(padded)
    noise = bytearray(padded)
    noise[-32_000_000::16] = np.ones(2_000_000, np.uint8).tobytes()
    (tmp_path / "noise.elf").write_bytes(noise)
    found = difference(original, tmp_path / "noise.elf")
    assert found.unexplained_count == 2_000_000 and len(found.unexplained) == 1000
    assert (
        list(text_lines(found))[-1]
        == "not explained: 2,000,000 differences: the second file is not patched, it has no manifest"
    )
