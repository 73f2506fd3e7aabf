"""What of a memory without headers is code: compared with the sections of the ELF file that it is of."""

from pathlib import Path

import numpy as np
import pytest

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.image import open_image
from kinst.targets.packed.code_pages import code_ranges
from tests.images import real_image
from tests.targets.packed.test_raw import SAMPLES
from tests.writers.flat_images import flat_image

PAGE = 4096


@pytest.mark.parametrize("name", ["kernel-arm64", "kernel-riscv64", "opensbi-1.6", "u-boot-arm64", "u-boot-riscv64"])
def test_code_ends_where_the_linker_ended_it(name: str) -> None:
    path = SAMPLES / f"{name}.elf" if name.startswith("kernel") else real_image(name)
    image, (data, start, _) = open_image(path), flat_image(path)
    found = code_ranges(np.frombuffer(data, np.uint8), start, image.facts)
    assert (len(found), found[0][0]) == (1, 0)
    last = max(one.address + one.size for one in image.code_regions) - start
    assert last - PAGE <= found[0][1] <= last + 3 * PAGE


def test_without_calls_all_may_be_code() -> None:
    data = np.frombuffer(Path(__file__).read_bytes(), np.uint8)
    assert code_ranges(data, 0, arch_by_name("arm64")) == [(0, len(data))]
    assert code_ranges(data[:0], 0, arch_by_name("arm64")) == [(0, 0)]


def test_code_in_two_places_is_two_ranges() -> None:
    call = np.frombuffer(bytes.fromhex("00000094") * 8, np.uint8)  # bl to itself
    data = np.zeros(64 * PAGE, np.uint8)
    for page in (20, 22, 50):
        data[page * PAGE : page * PAGE + len(call)] = call
    places = [(20 * PAGE, 22 * PAGE + 256), (50 * PAGE, 50 * PAGE + 256)]
    assert code_ranges(data, 0x8000_0000, arch_by_name("arm64")) == places
