"""kinst-rewrite --standalone: what is counted is counted whole, and what cannot be is told in one line."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import rewrite
from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.rewriting import Source, open_source
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.probe import parse_probe_name
from tests.samples.machines import MACHINES

AMD64 = MACHINES["amd64"].image
ALONE = (*MACHINES["amd64"].alone, "--probe", "fbt:::entry")
WRONG = (
    ((*ALONE, "--action", "bogus"), "--action bogus: is neither count nor record:FIELD,..."),
    ((*ALONE, "--action", "record:"), "--action record:: is neither"),
    ((*ALONE, "--action", "record:arg9"), "no field 'arg9': there are arg0 to arg5, time, cpu and the registers rax,"),
    ((*ALONE, "--action", "record:rip"), "no field 'rip'"),
    ((*ALONE, "--action", "record", "--ring", "100"), "--ring 100: not a power of two"),
    ((*ALONE, "--ring", "64"), "--ring: counters need none"),
    ((*ALONE, "--method", "trap"), "--method trap: says how a handler resumes the guest"),
    (("--probe", "fbt:::entry", "--action", "count"), "--action: is for --standalone"),
    ((*ALONE, "--data-base", "0xffffffff80101000"), "counters: 0x1000 bytes at 0xffffffff80101000 overlap segment 1"),
    ((*ALONE, "--trampoline-base", "0x123"), "trampolines: 0x123 is not a multiple of 0x1000"),
    (
        (*MACHINES["amd64"].alone, "--probe", "fbt::if_input:return"),
        "nothing left: 1 of 1 sites cannot be jumps: 1 a conditional or indirect jump",
    ),
)


def called(*words: object) -> Result:
    return CliRunner().invoke(rewrite, [str(word) for word in words], prog_name="kinst-rewrite")


@pytest.mark.parametrize(("words", "why"), WRONG, ids=lambda value: " ".join(value)[-40:] if value else "")
def test_what_is_wrong_is_told_and_nothing_written(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    result = called(AMD64, *words, "-o", tmp_path / "out.elf")
    assert result.exit_code in (1, 2)
    assert why in result.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_the_method_jump_is_standalone(tmp_path: Path) -> None:
    alone, jumps = tmp_path / "alone.elf", tmp_path / "jumps.elf"
    called(AMD64, *ALONE, "-o", alone)
    result = called(AMD64, "--method", "jump", *ALONE[1:], "-o", jumps)
    assert result.exit_code == 0
    assert jumps.read_bytes() == alone.read_bytes()


def test_breakpoints_and_jumps_are_not_mixed(tmp_path: Path) -> None:
    alone, patched = tmp_path / "alone.elf", tmp_path / "patched.elf"
    called(AMD64, *ALONE, "-o", alone)
    called(AMD64, "--probe", "fbt:::entry", "-o", patched)
    for image, words, why in (
        (alone, ALONE, "is standalone already"),
        (alone, ("--probe", "fbt:::return"), "is standalone already"),
        (patched, ALONE, "has probes already"),
    ):
        result = called(image, *words, "-o", tmp_path / "more.elf")
        assert result.exit_code == 1
        assert why in result.stderr
        assert not (tmp_path / "more.elf").exists()


def sites_of_probes(manifest: Manifest) -> dict[str, int]:
    counts = np.bincount(manifest.enablings["probe"], minlength=len(manifest.probes)).tolist()
    return {manifest.probe_name(row): count for row, count in enumerate(counts)}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_probe_is_there_with_all_of_its_sites_or_not_at_all(machine: str, tmp_path: Path) -> None:
    image, out = MACHINES[machine].image, tmp_path / "alone.elf"
    result = called(image, *MACHINES[machine].alone, "--probe", "fbt:::", "--format", "json", "-o", out)
    assert result.exit_code == 0, result.output
    manifest = find_manifest(open_image(out))
    assert manifest is not None
    every = sites_of_probes(manifest_of(resolve(open_source(Source(image)).program, [parse_probe_name("fbt:::")]))[0])
    found = sites_of_probes(manifest)
    assert found.items() <= every.items()
    assert max(every.values()) > 1
    assert len(found) < len(every)  # some have a site that is a tail call
