"""Static probes as the rewriter sees them: named, resolved, refused, written, listed and added to a patched image."""

from dataclasses import replace
from pathlib import Path

import pytest

from kinst.rewriter.cli import list_probes
from kinst.rewriter.diffing.diff import compare
from kinst.rewriter.listing import probe_rows
from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.naming.static_sites import provider_names, static_records
from kinst.rewriter.program import open_program
from kinst.rewriter.rewriting import Source, listed_probes, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.targets.arch.registry import NAMES
from kinst.targets.errors import KinstError, ManifestError, ProbeError, ProbeNameError
from kinst.targets.image import Image, open_image
from kinst.targets.instruction import Reason
from kinst.targets.manifest.packed import Manifest, ProbeKind, find_manifest, pack_manifest, unpack_manifest
from kinst.targets.probe import ProbeName, parse_probe_names
from kinst.targets.static_probes import static_notes
from tests.targets.test_static_probes import TEXT, image_with, note

SAMPLES = Path(__file__).parents[2] / "samples"


def sample(arch: str) -> Path:
    return SAMPLES / f"kernel-{arch}.elf"


def names(image: Image, *texts: str) -> list[ProbeName]:
    return [name for text in texts for name in parse_probe_names(text, providers=provider_names(image))]


def manifest_for(path: Path, *texts: str) -> Manifest:
    opened = open_source(Source(path))
    return plan_probes(opened, names(opened.image, *texts))[1].manifest


def probes_of(manifest: Manifest) -> list[str]:
    fields = (row.fields for row in probe_rows(manifest))
    return [":".join((provider, function, name)) for _, provider, _, function, name in fields]


@pytest.mark.parametrize("arch", NAMES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("callout_execute:::", ["callout_start", "callout_end"]),
        ("sdt:::", ["callout_start", "callout_end"]),
        ("sdt:::*_end", ["callout_end"]),
        ("callout_end", ["callout_end"]),
        ("callout*:::*_start", ["callout_start"]),
        ("callout_execute::callout_execute:callout_?n?", ["callout_end"]),
        ("callout_execute:kernel::callout_start", ["callout_start"]),
    ],
)
def test_names(arch: str, text: str, expected: list[str]) -> None:
    manifest = manifest_for(sample(arch), text)
    assert probes_of(manifest) == [f"callout_execute:callout_execute:{name}" for name in expected]
    assert len(manifest.sites) == len(expected)
    assert len(manifest.functions) == 1


def test_an_address_names_the_static_probe_there() -> None:
    image = open_image(sample("amd64"))
    address = static_notes(image)[1].place.address
    assert probes_of(manifest_for(sample("amd64"), f"callout_execute::{address:#x}:")) == [
        "callout_execute:callout_execute:callout_end"
    ]
    offset = address - (image.symbols.address_of("callout_execute") or 0)
    assert probes_of(manifest_for(sample("amd64"), f"::{address:#x}:")) == [
        "callout_execute:callout_execute:callout_end", f"kinst:callout_execute:{offset}",
    ]  # fmt: skip


def test_a_name_without_a_provider_means_static_probes_too() -> None:
    manifest = manifest_for(sample("riscv64"), "callout_execute:")
    kinds = set(manifest.probes["kind"].tolist())
    assert kinds == {int(kind) for kind in ProbeKind}
    shared = [row for row in manifest.enablings["site"].tolist() if manifest.enablings["site"].tolist().count(row) > 1]
    assert len(set(shared)) >= 2  # the nops are kinst's sites as well


@pytest.mark.parametrize(
    ("text", "error", "why"),
    [
        ("callout_execute:::callout-start", ProbeError, "no such static probe; there are callout_execute::callout_ex"),
        ("sdt:::gone", ProbeError, "no such static probe; there are callout_execute::callout_execute:callout_"),
        ("callout_execute::kmalloc:", ProbeError, "no such static probe"),
        ("callout_execute:other::", ProbeError, "no module 'other'"),
        ("callout_exec:::", ProbeNameError, "no provider 'callout_exec': did you mean callout_execute"),
        ("profile:::", ProbeNameError, "provider 'profile' has no probes in an image"),
    ],
)
def test_mistakes(text: str, error: type[KinstError], why: str) -> None:
    with pytest.raises(error, match=why):
        manifest_for(sample("arm64"), text)


def test_a_record_that_does_not_fit_the_code_is_refused(tmp_path: Path) -> None:
    wrong = b"".join(
        note(b"p", name, b"", TEXT + at) for name, at in ((b"good", 3), (b"ret", 64), (b"nowhere", 0x9000))
    )
    program = open_program(open_image(image_with(tmp_path, wrong)))
    outcome = resolve(program, names(program.image, "p:::")).outcomes[0]
    assert len(outcome.choice) == 1
    assert outcome.refusals.counts() == {Reason.NO_NOP: 1}
    assert outcome.refusals.address.tolist() == [TEXT + 64]
    with pytest.raises(ProbeError, match="is refused: no nop: the image's record"):
        plan_probes(open_source(Source(tmp_path / "image.elf")), names(program.image, "p:::ret"))


def test_places_of_one_function_are_one_probe(tmp_path: Path) -> None:
    places = [note(b"p", b"n", operands, TEXT + at) for at, operands in ((1, b"4@%eax"), (9, b"4@%ebx"))]
    other = note(b"p", b"m", b"", TEXT + 9, semaphore=TEXT + 0x100)
    program = open_program(open_image(image_with(tmp_path, b"".join([*places, other]))))
    resolution = resolve(program, names(program.image, "p:::"))
    manifest = plan_probes(open_source(Source(tmp_path / "image.elf")), names(program.image, "p:::"))[1].manifest
    assert sorted(probe.name for probe in resolution.static) == ["m", "n"]
    assert len(manifest.sites) == 2
    assert len(manifest.probes) == 2
    assert sorted(manifest.enablings["probe"].tolist().count(row) for row in (0, 1)) == [1, 2]
    by_name = {probe.name: probe for probe in manifest.static}
    assert [place.operands for place in by_name["n"].places] == [("4@%eax",), ("4@%ebx",)]
    assert by_name["m"].semaphores == (TEXT + 0x100,)


@pytest.mark.parametrize("arch", NAMES)
def test_a_patched_file_explains_itself_and_is_restored(arch: str, tmp_path: Path) -> None:
    opened = open_source(Source(sample(arch)))
    plan = plan_probes(opened, names(opened.image, "callout_execute:::", "fbt::kmalloc:"))[1]
    patched = tmp_path / "patched.elf"
    write_image(plan, patched)
    assert compare(open_image(sample(arch)), open_image(patched)).is_explained
    manifest = find_manifest(open_image(patched))
    assert manifest is not None
    assert manifest.static == plan.manifest.static
    restore(open_image(patched), manifest, tmp_path / "restored.elf")
    assert (tmp_path / "restored.elf").read_bytes() == sample(arch).read_bytes()


def test_adding_to_a_patched_image_keeps_identifiers(tmp_path: Path) -> None:
    first, second = tmp_path / "first.elf", tmp_path / "second.elf"
    opened = open_source(Source(sample("amd64")))
    write_image(plan_probes(opened, names(opened.image, "callout_end", "fbt::kmalloc:entry"))[1], first)
    opened = open_source(Source(first))
    assert opened.manifest is not None
    write_image(plan_probes(opened, names(opened.image, "callout_execute:::", "fbt::kmalloc:"))[1], second)
    before, after = opened.manifest, find_manifest(open_image(second))
    assert after is not None
    kept = [(row.fields[0], row.fields[1:]) for row in probe_rows(before)]
    assert set(kept) <= {(row.fields[0], row.fields[1:]) for row in probe_rows(after)}
    assert sorted(probes_of(after)) == [
        "callout_execute:callout_execute:callout_end", "callout_execute:callout_execute:callout_start",
        "fbt:kmalloc:entry", "fbt:kmalloc:return",
    ]  # fmt: skip
    image = opened.image
    listed, rows, _ = listed_probes(opened, resolve(opened.program, names(image, "callout_start")))
    assert [listed.probe_fields(int(row))[3] for row in rows] == ["callout_start"]


def test_manifests_with_static_probes_are_checked() -> None:
    manifest = manifest_for(sample("arm64"), "callout_execute:::")
    assert unpack_manifest(pack_manifest(manifest)).static == manifest.static
    with pytest.raises(ManifestError, match="static probes that do not exist"):
        unpack_manifest(pack_manifest(replace(manifest, static=manifest.static[:1])))
    hostile = replace(manifest.static[1], semaphores=(1 << 70,))
    with pytest.raises(ManifestError, match="is out of range"):
        unpack_manifest(pack_manifest(replace(manifest, static=(manifest.static[0], hostile))))


def test_an_image_without_records_has_none(tmp_path: Path) -> None:
    program = open_program(open_image(image_with(tmp_path, b"")))
    assert static_records(program.image).probes(program.functions) == ()


def test_they_are_listed_beside_fbt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["kinst-list", str(sample("amd64"))])
    with pytest.raises(SystemExit) as ended:
        list_probes()
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    static = [line.split() for line in lines if "callout_execute " in line and "kernel-amd64" in line]
    providers = [(fields[1], fields[-1]) for fields in static]
    assert providers == [
        ("fbt", "entry"), ("fbt", "return"), ("callout_execute", "callout_start"), ("callout_execute", "callout_end"),
    ]  # fmt: skip
    identifiers = [int(line.split()[0]) for line in lines[1:]]
    assert identifiers == sorted(set(identifiers))
