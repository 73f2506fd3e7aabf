"""What is asked of a site whose hits the CPU has behind it is what an armed site has, without what the CPU needs."""

import pytest

from kinst.runtime.trap.trap import Enabling
from kinst.targets.arch.registry import NAMES
from tests.runtime.providers.traced import sample, traced


@pytest.mark.parametrize("arch", NAMES)
def test_enablings_alone_are_those_of_the_site(arch: str) -> None:
    guest = traced(sample(arch), ["fbt:::", "kinst::vfs_lookup:", "callout_execute:::"])
    assert guest.enable("fbt:::", lambda _firing: None) > 100
    assert guest.enable("callout_execute:::", lambda _firing: None)
    assert guest.enable("kinst::vfs_lookup:", lambda _firing: None) > 10
    sites = guest.sites
    kinds = set[int]()
    for row in range(len(sites.manifest.sites)):
        whole = sites.site(row)
        assert sites.address(row) == whole.address
        assert [*map(_plain, sites.enablings(row))] == [*map(_plain, whole.enablings)]
        kinds.update(sites.manifest.probes["kind"][sites._probes_at(row)].tolist())
    assert len(kinds) == 4


def _plain(one: Enabling) -> tuple[object, ...]:
    return one.probe, one.offset, one.leaving, one.action.__qualname__
