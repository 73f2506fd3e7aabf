"""A million sites: the whole way stays vectorised, within the time and memory that a kernel needs."""

import resource
import time
from pathlib import Path

import pytest

from kinst.rewriter.diffing.diff import compare
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.targets.image import open_image
from kinst.targets.probe import parse_probe_names
from tests.gated import draws
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

TEXT = 0xFFFF_FFFF_8100_0000
# push, mov, a RIP-relative load, a test, a branch over a call, pop, ret: 8 instructions, 24 bytes.
FUNCTION = bytes.fromhex("55 4889e5 488b0500000010 4885c0 7401 90 5d c3 cccccccccc")


@pytest.mark.parametrize("count", draws(25_000, 125_000))  # functions
def test_a_million_sites_take_seconds_and_little_memory(count: int, tmp_path: Path) -> None:
    assert len(FUNCTION) == 24
    symbols = [Symbol(f"f{row}", TEXT + 24 * row, 19) for row in range(count)]
    path, out = tmp_path / "big.elf", tmp_path / "p.elf"
    path.write_bytes(
        elf64(EM_X86_64, TEXT, [Part(".text", TEXT, FUNCTION * count, 5, load_address=0x100_0000)], symbols)
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    plan = plan_probes(open_source(Source(path)), parse_probe_names("kinst:::"))[1]
    manifest = write_image(plan, out)
    assert len(manifest.sites) == len(manifest.probes) == 8 * count
    assert time.process_time() - start < 15 * count / 125_000, "of processor time: 2 s where this was written"
    assert compare(open_image(path), open_image(out)).is_explained
    restore(open_image(out), manifest, tmp_path / "back.elf")
    assert (tmp_path / "back.elf").read_bytes() == path.read_bytes()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert used < 12 * count, f"{used} KB for a million sites"
