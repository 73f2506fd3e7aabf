"""Any probes, added in any steps: the contract holds after each, all probes are there, and the original comes back."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.planning.plan import manifest_of
from kinst.rewriter.program import Program
from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.rewriter.writing.restore import restore
from kinst.rewriter.writing.write import write_image
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from kinst.targets.probe import parse_probe_name
from tests.contract import check_contract

ROOT = Path(__file__).parent.parent.parent
NAMES = (
    *("kinst::kmalloc:", "kinst::k*:0", "kinst::printk:*4", "::trap_*:"),
    *("fbt::rpc_*:", "fbt:::entry", "fbt::*e*:return"),
)


@pytest.fixture(scope="module", params=["amd64", "arm64", "riscv64"])
def kernel(request: pytest.FixtureRequest) -> Program:
    return open_source(Source(ROOT / "samples" / f"kernel-{request.param}.elf")).program


def probe_names(program: Program, specs: list[str]) -> set[str]:
    manifest, _ = manifest_of(resolve(program, [parse_probe_name(spec) for spec in specs]))
    return {manifest.probe_name(row) for row in range(len(manifest.probes))}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=3))
def test_any_steps(kernel: Program, steps: list[list[str]]) -> None:
    original = kernel.image.path
    with tempfile.TemporaryDirectory() as folder:
        source, out = original, Path(folder) / "p.elf"
        for step in steps:
            opened = open_source(Source(source))
            write_image(plan_probes(opened, [parse_probe_name(spec) for spec in step])[1], out)
            check_contract(original.read_bytes(), out.read_bytes())
            source = out
        manifest = find_manifest(open_image(out))
        assert manifest is not None
        found = {manifest.probe_name(row) for row in range(len(manifest.probes))}
        assert found == probe_names(kernel, [spec for step in steps for spec in step])
        restore(open_image(out), manifest, Path(folder) / "back.elf")
        assert (Path(folder) / "back.elf").read_bytes() == original.read_bytes()
