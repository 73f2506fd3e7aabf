"""The symbols that a Linux kernel keeps for itself: all three orders of its tables, and Debian's kernels."""

import random

import numpy as np
import pytest

from kinst.targets.image import open_image
from kinst.targets.kallsyms import Kernel, KernelSymbols, kernel_symbols
from kinst.targets.kernel_names import own_names
from tests.images import at_hand, real_image
from tests.writers.boot_images import Layout, kallsyms

TEXT = 0xFFFF_FFFF_8100_0000
AT = 0x2_0000  # of the tables, from TEXT
LAYOUTS: tuple[Layout, ...] = ("6.1", "6.12", "7.0")


def symbols(count: int) -> list[tuple[int, str, str]]:
    rng = random.Random(count)
    return [
        (TEXT + 16 * number, rng.choice("tTdDrw"), f"vfs_{number:03}_{'x' * rng.choice((1, 9, 140))}_entry")
        for number in range(count)
    ]


def found(data: bytes) -> KernelSymbols | None:
    inside = lambda places: places - np.uint64(TEXT) < np.uint64(AT)  # noqa: E731
    kernel = Kernel(data, lambda at: int.from_bytes(data[at : at + 8], "little"), lambda at: TEXT + at, inside)
    return kernel_symbols(kernel)


def kernel(tables: bytes) -> bytes:
    """Tables among other data, some of which could be taken for them."""
    digits = b"".join(b"%d\0" % digit for digit in range(10))
    numbers = np.arange(0, 200_000, 700, dtype="<u4").tobytes()
    return (bytes(100) + digits * 30 + numbers).ljust(AT, b"\x90") + tables + digits + bytes(5000)


@pytest.mark.parametrize("count", [1024, 1500])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_order_is_found(layout: Layout, count: int) -> None:
    wanted = symbols(count)
    all_ = found(kernel(kallsyms(wanted, TEXT + AT, layout)))
    assert all_ is not None
    rows = zip(all_.addresses.tolist(), map(chr, all_.letters), all_.names, strict=True)
    assert [(address, letter, name.decode()) for address, letter, name in rows] == wanted


@pytest.mark.parametrize("layout", ["6.1", "6.12"])
def test_per_cpu_symbols_are_absolute(layout: Layout) -> None:
    wanted = [(8 * number, "A", f"per_cpu_{number}") for number in range(700)] + symbols(600)
    all_ = found(kernel(kallsyms(wanted, TEXT + AT, layout, per_cpu=700)))
    assert all_ is not None
    assert all_.addresses.tolist() == [address for address, _, _ in wanted]


def test_tables_of_another_kernel_are_not_believed() -> None:
    elsewhere = [(address + (1 << 30), letter, name) for address, letter, name in symbols(1024)]
    assert found(kernel(kallsyms(elsewhere, TEXT + AT, "6.12"))) is None


def test_damage_is_no_crash() -> None:
    whole, rng = kernel(kallsyms(symbols(1024), TEXT + AT, "6.12")), random.Random(3)
    for _ in range(60):
        damaged = bytearray(whole[: rng.randrange(AT, len(whole))])
        for _ in range(rng.randint(0, 40)):
            damaged[rng.randrange(AT, len(damaged))] = rng.randrange(256)
        found(bytes(damaged))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", at_hand("linux-amd64", "linux-6.12-amd64", "linux-arm64", "linux-riscv64", "linux-7-riscv64")
)
def test_debians_kernels_name_every_function(name: str) -> None:
    """All that .symtab names, which nobody asks here."""
    image = open_image(real_image(name))
    functions = np.flatnonzero((image.symbols.kind == 2) & image.is_code(image.symbols.address))
    wanted = set(zip(image.symbols.address[functions].tolist(), image.symbols.names(functions), strict=True))
    names = own_names(image)
    known = set(zip(names.address.tolist(), names.names(np.arange(len(names))), strict=True))
    assert len(wanted) > 40_000
    assert len(wanted - known) < 0.001 * len(wanted)
