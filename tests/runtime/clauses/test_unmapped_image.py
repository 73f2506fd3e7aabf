"""Variables of a kernel that has not turned paging on."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.clauses.guest.unmapped_image import with_unmapped_image
from kinst.runtime.cli import run
from kinst.runtime.machine.physical.stage import Stage

SAMPLES = Path(__file__).parents[3] / "samples"
HIGH = 0xFFFF_FFFF_8010_0000
SEGMENTS = ((0x10_0000, 0x10_0000, 0x1000), (HIGH, 0x20_0000, 0x1000), (HIGH + 0x1000, 0x30_0000, 0x10))


def test_what_is_not_mapped_is_where_it_was_loaded() -> None:
    translate = with_unmapped_image(lambda _address: None, SEGMENTS, lambda: Stage.PHYSICAL)
    assert [translate(HIGH), translate(HIGH + 0xFFF), translate(HIGH + 0x100F)] == [0x20_0000, 0x20_0FFF, 0x30_000F]
    assert [translate(HIGH - 1), translate(HIGH + 0x1010), translate(0x10_0000)] == [None, None, None]


def test_an_address_cut_to_its_low_half_is_not_mapped() -> None:
    translate = with_unmapped_image(lambda address: address & 0xFFFF_FFFF, SEGMENTS, lambda: Stage.PHYSICAL)
    assert [translate(HIGH + 8), translate(HIGH - 8), translate(0x10_0008)] == [0x20_0008, 0x800F_FFF8, 0x10_0008]


def test_the_guest_has_the_last_word() -> None:
    assert with_unmapped_image(lambda _address: 0x7000, SEGMENTS, lambda: Stage.PHYSICAL)(HIGH) == 0x7000


def test_an_image_where_it_is_linked_needs_none_of_it() -> None:
    def observe(_address: int) -> int | None:
        return None

    assert with_unmapped_image(observe, SEGMENTS[:1], lambda: Stage.PHYSICAL) is observe


@pytest.mark.parametrize(
    ("stage", "expected"), [(Stage.LOADED, 0x40_0010), (Stage.PHYSICAL, 0x10), (Stage.TRANSLATED, 0x10)]
)
def test_a_segment_at_zero(stage: Stage, expected: int) -> None:
    """Per-CPU variables are linked there; memory is there too, and counts once the guest runs."""
    assert with_unmapped_image(lambda address: address, ((0, 0x40_0000, 0x1000),), lambda: stage)(0x10) == expected


def test_only_what_the_guests_own_tables_map_is_memory() -> None:
    assert with_unmapped_image(lambda _address: None, SEGMENTS, lambda: Stage.TRANSLATED)(HIGH) is None


@pytest.mark.parametrize("machine", ["amd64", "arm64", "riscv64"])
def test_begin_reads_the_variables_of_the_image(machine: str) -> None:
    """Through a pointer, too."""
    program = 'BEGIN { printf("%d %s", `ncpu, stringof(`interfaces[1].if_name)); exit(0); }'
    words = ["-q", "-n", program, str(SAMPLES / f"kernel-{machine}.elf")]
    result = CliRunner().invoke(run, words, prog_name="kinst-run")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "1 em1\n", "")
