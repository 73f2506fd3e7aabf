"""The symbols that a Linux kernel keeps for itself: all three orders of its tables, and Debian's kernels."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from kinst.targets.arch.registry import arch_by_name
from kinst.targets.elf.symbols import STT_FUNC, STT_NOTYPE, STT_OBJECT
from kinst.targets.image import open_image
from kinst.targets.kallsyms import Kernel, KernelSymbols, kernel_symbols
from kinst.targets.kernels.kernel_names import own_names
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


def found(data: bytes, arch: str = "amd64") -> KernelSymbols | None:
    kernel = Kernel(
        data,
        arch_by_name(arch),
        bases=lambda at: (int.from_bytes(data[at : at + 8], "little"),),
        address=lambda at: TEXT + at,
        offset=lambda address: address - TEXT,
        is_code=lambda places: places - np.uint64(TEXT) < np.uint64(AT),
    )
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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_symbols_that_do_not_ascend_are_not_believed(layout: Layout) -> None:
    """As a form reads that is not the tables' own, though all of it may be within the code."""
    wanted = symbols(1024)
    wanted[500], wanted[600] = wanted[600], wanted[500]
    assert found(kernel(kallsyms(wanted, TEXT + AT, layout))) is None


def calls(arch: str, count: int, target: Callable[[int], int]) -> bytes:
    """Direct calls, one behind the other from `TEXT` on, to offsets from `TEXT`."""
    code = b""
    for number in range(count):
        distance = target(number) - len(code)
        match arch:
            case "amd64":
                code += b"\xe8" + (distance - 5).to_bytes(4, "little", signed=True)
            case "arm64":
                code += (0x94000000 | distance >> 2 & 0x3FFFFFF).to_bytes(4, "little")
            case _:
                high = distance + 0x800 >> 12
                code += (0x97 | (high & 0xFFFFF) << 12).to_bytes(4, "little")
                code += (0x80E7 | (distance - (high << 12) & 0xFFF) << 20).to_bytes(4, "little")
    return code


@pytest.mark.parametrize("arch", ["amd64", "arm64", "riscv64"])
def test_calls_confirm_or_contradict(arch: str) -> None:
    """The first symbol is where code starts; the same tables are not believed where calls lead elsewhere."""
    wanted = sorted([*symbols(1024), (TEXT, "T", "_stext")])
    tables = kernel(kallsyms(wanted, TEXT + AT, "6.12"))
    functions = [address - TEXT for address, letter, _ in wanted if letter in "tT"]
    right = calls(arch, 100, lambda number: functions[number + 100])
    wrong = calls(arch, 100, lambda number: functions[number + 100] + 8)
    assert found(right + tables[len(right) :], arch) is not None
    assert found(wrong + tables[len(wrong) :], arch) is None


def test_what_is_in_data_is_no_function() -> None:
    """nm gives it the letter of code where .data may be executed (amd64)."""
    rows = [(TEXT + 64 * number, "t", f"name_{number}") for number in range(1200)]
    rows[300:301] = [(TEXT + 64 * 300, "T", "_sdata"), (TEXT + 64 * 300, "t", "hpet")]
    rows.append((TEXT + 64 * 1200, "T", "_edata"))
    all_ = found(kernel(kallsyms(rows, TEXT + AT, "7.0")))
    assert all_ is not None
    table = all_.symbols
    kinds = dict(zip(table.names(np.arange(len(table))), table.kind.tolist(), strict=True))
    sizes = dict(zip(table.names(np.arange(len(table))), table.size.tolist(), strict=True))
    assert (kinds["name_299"], sizes["name_299"]) == (STT_FUNC, 0)
    assert (kinds["hpet"], sizes["hpet"]) == (STT_OBJECT, 64)
    assert (kinds["name_1199"], sizes["name_1199"]) == (STT_OBJECT, 64)
    assert kinds["_edata"] == STT_FUNC


def test_a_table_that_the_linker_put_into_text_is_no_function() -> None:
    """KVM's table of exceptions for arm64 (7.2) has two pairs of bounds. Functions can have such names as well."""
    rows = [(TEXT + 64 * number, "t", f"name_{number}") for number in range(1200)]
    for place, which in ((300, "start"), (301, "stop")):
        for before in ("", "__kvm_nvhe_"):
            rows.append((TEXT + 64 * place, "T", f"{before}__{which}___kvm_ex_table"))
    rows += [(TEXT + 64 * place, "T", f"__{which}_tty") for place, which in ((310, "start"), (311, "stop"))]
    rows += [(TEXT + 64 * place, "T", f"__{which}___used") for place, which in ((320, "start"), (322, "stop"))]
    rows = sorted(row for row in rows if row[2] not in ("name_300", "name_310", "name_311"))
    all_ = found(kernel(kallsyms(rows, TEXT + AT, "7.0")))
    assert all_ is not None
    table = all_.symbols
    names = table.names(np.arange(len(table)))
    kinds = dict(zip(names, table.kind.tolist(), strict=True))
    sizes = dict(zip(names, table.size.tolist(), strict=True))
    for before in ("", "__kvm_nvhe_"):
        assert (kinds[f"{before}__start___kvm_ex_table"], sizes[f"{before}__start___kvm_ex_table"]) == (STT_OBJECT, 64)
        assert kinds[f"{before}__stop___kvm_ex_table"] == STT_NOTYPE
    assert {kinds[name] for name in ("name_301", "__start_tty", "__stop_tty", "__start___used")} == {STT_FUNC}


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
    # A kernel without CONFIG_KALLSYMS_ALL leaves out what is only between _etext and _sinittext, or in .exit.text.
    assert len(wanted - known) < (0.001 if names.address_of("init_task") else 0.01) * len(wanted)
