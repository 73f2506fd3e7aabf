"""`poe prove` on a few small images of other kinds than the rest of the tests have, and that it can say no."""

import numpy as np
import pytest

from kinst.rewriter.rewriting import Source, open_source, plan_probes
from kinst.targets.probe import parse_probe_names
from tests.boundaries import newer_than_objdump, strays
from tests.images import real_image
from tests.prove import prove


# Secure firmware, a C library's loader for two machines, a program without a dynamic section, and GRUB, not linked.
@pytest.mark.parametrize("name", ["tf-a-rk3399", "ld-amd64", "ld-riscv64", "klibc-sh", "grub-arm64"])
def test_an_image_is_proved(name: str) -> None:
    proof = prove(name)
    assert proof.failures == ()
    assert proof.sites > 5_000


def test_a_site_inside_an_instruction_is_a_stray() -> None:
    path = real_image("klibc-sh")
    opened = open_source(Source(path))
    sites = plan_probes(opened, parse_probe_names("kinst:::"))[1].manifest.sites.copy()
    wide = np.flatnonzero(sites["size"] > 1)[::100]
    sites["address"][wide] += np.uint64(1)
    found = strays(opened.program, path, sites)
    assert {stray.address for stray in found} == set(sites["address"][wide].tolist())
    assert not any(stray.reason for stray in found)


@pytest.mark.parametrize(
    ("word", "is_code"),
    [
        *(
            (word, True)
            for word in (0xE13F8100, 0xE11F8040, 0xD91F1C01, 0xC9817E76, 0xC9C0FCA7, 0x19E30401, 0x19E38401)
        ),
        # Of a table of KVM's that was once patched, and next to the others.
        *(
            (word, False)
            for word in (0xFEDF96E8, 0xFFFE9134, 0xE13F9100, 0xD91F0001, 0xC9817A76, 0x19E32401, 0x19E30001)
        ),
    ],
)
def test_what_objdump_does_not_know_is_excused_by_its_encoding(word: int, *, is_code: bool) -> None:
    """As objdump of binutils 2.47.50 has them."""
    assert bool(newer_than_objdump(word.to_bytes(4, "little"))) is is_code
