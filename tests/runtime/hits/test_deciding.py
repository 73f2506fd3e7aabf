"""How hits are delivered is decided once for each site: what the engine then does is what was decided."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kinst.runtime import Machine, Options
from kinst.runtime.api import open_image
from kinst.runtime.hits.actions import NOTHING, Reads
from kinst.runtime.hits.counted import CountedSites
from kinst.runtime.hits.deciding import Displaced, ProbeActions, SiteDeliveries
from kinst.runtime.tracing.given import MethodName
from kinst.runtime.trap.delivery import Delivery, Way
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.instruction import Flow, Verdict
from kinst.targets.manifest.packed import Manifest, Method, ProbeKind
from tests.system.cases import SAMPLES, Case
from tests.system.runs import let_go

each_sample = pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.image)
# All deliveries, also at the same sites.
PROGRAM = """
    fbt:::entry, fbt:::return { @[probefunc] = count(); }
    fbt::k*:entry { @a[arg0 & 7] = count(); } fbt::vfs*:entry { self->at = timestamp; }
    fbt::vfs*:return /self->at/ { @t = max(timestamp - self->at); } fbt::m*:entry { trace(arg0); }
    kinst::kmalloc:, kinst::memcpy: { @i[probename] = count(); } fbt::s*:entry { @b[arg8] = count(); }
"""


@each_sample
@pytest.mark.parametrize("method", ["auto", "block", "emulate"])
def test_the_engine_does_what_was_decided(case: Case, method: MethodName) -> None:
    with open_image(case.path) as file:
        trace = file.trace(PROGRAM, machine=Machine(board=case.machine, clock="icount"), options=Options(method=method))
    let_go(trace, case.until, case.asks)
    code, counted = trace.guest.code, trace.guest.system.trap.counted
    assert code is not None
    assert isinstance(counted, CountedSites)
    bias = counted.recorded._records.bias
    done = {
        Way.COUNT: counted._cells, Way.DISPATCH: counted._dispatched,
        Way.RECORD: [at - bias for at in counted.recorded._alike],
        Way.REPLAY: [at - bias for at in counted.recorded._replayed],
    }  # fmt: skip
    seen = Counter[Way]()
    for way, addresses in done.items():
        for address in addresses:
            row = code.sites.row_at(address)
            assert row is not None
            assert code.sites.deliveries.of(row).way is way, f"{address:#x}"
            seen[way] += 1
    assert set(seen) == set(done)
    assert code.sites.deliveries.is_at_block.any() == (method == "block")


COUNTS, RECORDS, DISPATCHES = Delivery(Way.COUNT), Delivery(Way.RECORD), Delivery(Way.DISPATCH, "it looks")


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    with open_image(SAMPLES[0].path) as file:
        code = file.trace("fbt:::entry, fbt:::return, kinst::kmalloc: { @ = count(); }").guest.code
    assert code is not None
    return code.sites.manifest


def decided(manifest: Manifest, delivery: Delivery, method: Method = Method.AUTO, **more: object) -> SiteDeliveries:
    """All probes have one delivery."""
    of = np.ones(len(manifest.probes), np.uint32)
    actions = ProbeActions([DISPATCHES, delivery], [NOTHING, NOTHING], of, (), {})
    return SiteDeliveries(manifest, replace(actions, **more), Displaced(AMD64, method, reaches=True))  # type: ignore[arg-type]


AMD64 = arch_by_name("amd64")


def rows_of(manifest: Manifest, kind: ProbeKind) -> list[int]:
    enablings = manifest.enablings
    kinds = manifest.probes["kind"][enablings["probe"]]
    sites = enablings["site"][kinds == kind]
    return sorted(set(sites.tolist()))


def test_a_site_is_delivered_as_the_dearest_of_its_probes(manifest: Manifest) -> None:
    both = sorted({*rows_of(manifest, ProbeKind.KINST)} & {*rows_of(manifest, ProbeKind.FBT_ENTRY)})
    other = next(row for row in rows_of(manifest, ProbeKind.FBT_ENTRY) if row not in both)
    of = (1 + (manifest.probes["kind"] == ProbeKind.KINST)).astype(np.uint32)
    found = decided(manifest, COUNTS, deliveries=[DISPATCHES, COUNTS, RECORDS], reads=[NOTHING] * 3, of=of)
    assert (found.of(both[0]).way, found.of(other).way) == (Way.RECORD, Way.COUNT)


def test_nothing_is_batched_that_a_breakpoint_does_not_tell(manifest: Manifest) -> None:
    sites, returns = manifest.sites, rows_of(manifest, ProbeKind.FBT_RETURN)
    found = decided(manifest, COUNTS)
    assert {found.of(row).way for row in returns if sites["flow"][row] == Flow.RETURN} == {Way.COUNT}
    tails = [row for row in returns if sites["flow"][row] != Flow.RETURN]
    assert {found.of(row).why for row in tails} == {"a function is left there by a jump, or may be"}

    entry = rows_of(manifest, ProbeKind.FBT_ENTRY)[0]
    probe = int(manifest.enablings["probe"][manifest.enablings["site"] == entry][0])
    assert "a provider" in decided(manifest, COUNTS, planted=(probe,)).of(entry).why
    in_memory = {int(ProbeKind.FBT_ENTRY): lambda _index: None}
    looks = decided(manifest, RECORDS, reads=[NOTHING, Reads(frozenset({8}))], registers=in_memory)
    assert looks.of(entry).why == "an argument there is not in a register"

    in_none = {int(ProbeKind.FBT_ENTRY): lambda _index: ()}
    has_none = decided(manifest, RECORDS, reads=[NOTHING, Reads(frozenset({8}))], registers=in_none)
    assert has_none.of(entry).way is Way.COUNT  # there is no such argument

    nothing = decided(manifest, COUNTS, of=np.zeros(len(manifest.probes), np.uint32))
    assert {nothing.of(row).way for row in range(len(sites))} == {Way.DISPATCH}


def test_what_the_guest_wrote_at_a_site_counts(manifest: Manifest) -> None:
    found, sites = decided(manifest, COUNTS), manifest.sites
    row = next(row for row in rows_of(manifest, ProbeKind.FBT_RETURN) if sites["flow"][row] == Flow.RETURN)
    written = sites[row].copy()
    assert found.of(row, written).way is Way.COUNT
    written["flow"] = Flow.JUMP
    assert found.of(row, written) == Delivery(Way.DISPATCH, "a function is left there by a jump, or may be")

    copied = next(row for row in rows_of(manifest, ProbeKind.KINST) if sites["verdict"][row] != Verdict.EMULATE)
    written = sites[copied].copy()
    written["verdict"], written["kind"] = Verdict.EMULATE, 255
    assert found.of(copied, written) == Delivery(
        Way.DISPATCH, "the displaced instruction there depends on its own address"
    )


def test_as_many_sites_are_told_of_as_there_are(manifest: Manifest) -> None:
    wanted = np.ones(len(manifest.sites), np.bool_)
    found = decided(manifest, COUNTS).counted(wanted)
    assert sum(count for _, count in found) == len(manifest.sites)
    assert [one.way for one, _ in found] == sorted(one.way for one, _ in found)
