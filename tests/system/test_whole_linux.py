"""Debian's kernels, traced from the first instruction to power-off: they print what they print under QEMU; thousands of
probes change nothing, fire as often as a hook of raw Unicorn sees their instructions executed on the plain kernel, and
count the programs and system calls that there are."""

import re
from collections import Counter

import numpy as np
import pytest

from kinst.targets.image import open_image
from tests.images import at_hand, modules_of, real_image
from tests.linux_programs import MARKER, from_marker, lines_of
from tests.system.control import Way, decoded
from tests.system.test_linux_disks import MODULES, TOOLS
from tests.system.whole_linux import FUNCTIONS, INLINED, WHOLE, Kernel, Plain, Probed, drawn, plain_run, probed_run

pytestmark = [pytest.mark.long, pytest.mark.skipif(not all(TOOLS), reason="needs e2fsprogs")]
# QEMU's PC routes interrupts of its bus by a device; and a busy host's time is QEMU's.
ITS_OWN = re.compile(
    r"virtio-pci \S+: found PCI INT|ACPI: \S+: Enabled at IRQ|CE: \w+ increased min_delta_ns|hrtimer: interrupt took"
)
# What the script starts, line by line. A shell that becomes no other program ends as `init`.
NAMES = """busybox mount  mount  mkdir mount cat  uname  ls sort tr  seq awk  head gzip gunzip md5sum  cat sed
    cp cmp wc rm  find xargs sort  init sort uniq cut  expr dd wc  init base64 date factor  sleep grep
    cp umount  mount cat umount"""
STARTED = Counter(NAMES.split()) + Counter(init=20)
SYSTEM_CALL = {"amd64": "__x64_sys_", "arm64": "__arm64_sys_", "riscv64": "__riscv_sys_"}


@pytest.fixture(scope="module", params=at_hand("linux-amd64", "linux-arm64", "linux-riscv64"))
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    made = Kernel(request.param, tmp_path_factory.mktemp(request.param))
    made.prepare()
    return made


@pytest.fixture(scope="module")
def plain(kernel: Kernel) -> Plain:
    return plain_run(kernel)


@pytest.fixture(scope="module")
def probed(kernel: Kernel, plain: Plain) -> Probed:
    functions, whole = drawn(kernel, plain)
    assert (len(functions), len(whole)) == (FUNCTIONS, WHOLE)
    return probed_run(kernel, functions, whole)


def test_user_space_prints_what_it_prints_under_qemu(kernel: Kernel, plain: Plain) -> None:
    """Lines of programs are in order; those of the kernel come from its threads, too, and when depends on time."""
    console = kernel.under_qemu()
    if console is None:
        pytest.skip("needs QEMU")
    theirs = [line for line in from_marker(lines_of(console)) if not ITS_OWN.match(line)]
    assert Counter(from_marker(lines_of(plain.console))) == Counter(theirs)
    assert of_programs(plain.console) == of_programs(console)


def of_programs(console: bytes) -> list[str]:
    lines = console.decode().replace("\r", "").splitlines()
    shown = [line for line in lines[lines.index(MARKER) :] if not line.startswith("[")]
    assert shown[1] == "text on a disk"
    assert shown[-2:] == ["end", "hello"]
    return shown


def test_probes_change_nothing(plain: Plain, probed: Probed) -> None:
    """Not even the times that the kernel prints: an instruction takes as long with a probe as without."""
    assert probed.console == plain.console
    assert probed.time == plain.time


def test_probes_fire_as_often_as_their_instructions_are_executed(kernel: Kernel, plain: Plain, probed: Probed) -> None:
    """But for conditional jumps, from which control may not leave, and repeated instructions, which are executed once
    for each repetition and hit once: `test_exact_hits` has those of smaller images."""
    image = open_image(real_image(kernel.name))
    places = hits = 0
    for kind, sites in probed.sites.items():
        left_out = Way.RESUME if kind == "kinst" else Way.MAYBE
        compared = sorted(site for site in sites if decoded(image, site)[0] is not left_out)
        executed = plain.executed(np.array(compared, np.uint64)).tolist()
        wanted = {site: count * sites[site] for site, count in zip(compared, executed, strict=True)}
        assert {site: probed.hits[kind, site] for site in compared} == wanted, kind
        places, hits = places + len(compared), hits + sum(wanted.values())
    assert places > 0.8 * sum(map(len, probed.sites.values()))
    assert hits > 100_000
    assert {kind for kind, _ in probed.hits} == set(probed.sites)
    assert len(probed.sites) == 2 + 2 * len(INLINED)


def test_system_calls_are_counted(kernel: Kernel, plain: Plain, probed: Probed) -> None:
    """As often as the kernel's functions for them are entered."""
    symbols = open_image(real_image(kernel.name)).symbols
    places = [symbols.address_of(SYSTEM_CALL[kernel.machine] + name) for name in probed.system_calls]
    executed = plain.executed(np.array(places, np.uint64)).tolist()
    assert probed.system_calls == dict(zip(probed.system_calls, executed, strict=True))
    assert len(places) > 40


def test_programs_are_those_that_the_script_starts(kernel: Kernel, probed: Probed) -> None:
    modules = modules_of(kernel.name, "|".join(MODULES))
    assert probed.ended == STARTED + Counter(insmod=len(modules))
