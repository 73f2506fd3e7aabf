"""kinst: a probe at any instruction. Its arguments are all zero: what it shows is regs[]."""

from kinst.runtime.providers.site_provider import SiteProvider
from kinst.runtime.sites import SiteTable
from kinst.runtime.trap import Firing
from kinst.targets.manifest import ProbeKind


def kinst_provider(sites: SiteTable) -> SiteProvider:
    """The kinst probes of a patched image."""
    return SiteProvider("kinst", sites, {ProbeKind.KINST: _argument})


def _argument(_firing: Firing, _index: int) -> int:
    return 0
