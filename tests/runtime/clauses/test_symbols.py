"""Names of addresses: real kernels against nm, an image without symbols, copies, and the answers' forms."""

import subprocess
from pathlib import Path

import pytest

from kinst.runtime.clauses.guest.moved_image import MovedImage
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.targets.image import Image, open_image
from tests.images import real_image
from tests.targets.inputs import symbol_table
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

SAMPLES = Path(__file__).parents[3] / "samples"
MACHINES = ("amd64", "arm64", "riscv64")


def sample(machine: str) -> Image:
    return open_image(SAMPLES / f"kernel-{machine}.elf")


def nm(path: Path) -> list[tuple[int, int, str, str]]:
    """(address, size, letter, name) of symbols with a size, as binutils reads them."""
    lines = subprocess.run(["nm", "-S", str(path)], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return [(int(row[0], 16), int(row[1], 16), row[2], row[3]) for row in rows if len(row) == 4]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_symbol_names_its_first_middle_and_last_byte(machine: str) -> None:
    image = sample(machine)
    symbols = ImageSymbols(image)
    aliases: dict[int, set[str]] = {}
    for address, _, _, name in nm(image.path):
        aliases.setdefault(address, set()).add(name)
    for address, size, _, _ in nm(image.path):
        for at in {address, address + size // 2, address + size - 1}:
            place = symbols.place(at)
            assert place is not None and place.name in aliases[address]
            assert place.start == address
            offset = f"+{at - address:#x}" if at > address else ""
            assert symbols.describe(at, "stack") == f"{image.module}`{place.name}{offset}"


def test_the_kind_decides_what_is_shown() -> None:
    image = sample("riscv64")
    symbols = ImageSymbols(image)
    address, _, _, name = next(row for row in nm(image.path) if row[3] == "printk")
    inside = address + 0x10
    full, short = f"{image.module}`{name}+0x10", f"{image.module}`{name}"
    kinds = {"": full, "uaddr": full, "sym": short, "func": short, "usym": short, "ufunc": short}
    kinds |= {"mod": image.module, "umod": image.module}
    assert {kind: symbols.describe(inside, kind) for kind in kinds} == kinds
    assert symbols.object_start(inside, "sym") == symbols.object_start(inside, "func") == address
    assert symbols.object_start(inside, "uaddr") == inside
    assert symbols.object_start(inside, "mod") == symbols.object_start(address, "mod") <= address


def test_behind_a_call_at_the_end_of_a_function_a_caller_is_that_function() -> None:
    """What never returns is called last; behind it is the next function. Elsewhere a stack may begin a function."""
    image = sample("arm64")
    rows = {name: (address, size) for address, size, _, name in nm(image.path)}
    (start, size), (behind, _) = rows["machine_start"], rows["power_off"]
    assert behind == start + size
    symbols = ImageSymbols(image, follows_call=lambda link: link == behind)
    assert symbols.describe(behind, "caller") == f"{image.module}`machine_start+{size:#x}"
    assert symbols.describe(behind, "stack") == f"{image.module}`power_off"
    assert symbols.describe(start, "caller") == f"{image.module}`machine_start"


def test_addresses_without_a_name_are_numbers() -> None:
    image = sample("amd64")
    symbols = ImageSymbols(image)
    assert symbols.describe(0x1234, "sym") == symbols.describe(0x1234, "mod") == "0x1234"
    assert symbols.object_start(0x1234, "sym") == symbols.object_start(0x1234, "mod") == 0x1234
    assert symbols.describe(2**64 - 1, "") == "0xffffffffffffffff"
    covered = [range(address, address + size) for address, size, _, _ in nm(image.path)]
    segment = next(segment for segment in image.segments if segment.flags & 1)
    nameless = [
        address
        for address in range(segment.address, segment.address + segment.size)
        if symbols.place(address) is None and not any(address in span for span in covered)
    ]
    assert nameless
    assert symbols.describe(nameless[0], "") == f"{image.module}`{nameless[0]:#x}"


def test_data_objects_have_names() -> None:
    """cpu_stacks is in .bss, which has no bytes in the file."""
    image = sample("arm64")
    symbols = ImageSymbols(image)
    address, size, letter, _ = next(row for row in nm(image.path) if row[3] == "cpu_stacks")
    assert letter in "bB"
    assert symbols.describe(address + size - 1, "") == f"{image.module}`cpu_stacks+{size - 1:#x}"
    assert symbols.describe(address + size - 1, "sym") == f"{image.module}`cpu_stacks"


def test_a_stripped_image_has_the_names_of_its_probes() -> None:
    """U-Boot has no symbols: functions are discovered and named by their addresses."""
    image = open_image(real_image("u-boot-arm64"))
    place = ImageSymbols(image).place(image.entry + 0x40)
    assert place is not None and place.name == f"sub_{place.start:x}"


def test_nothing_is_read_before_it_is_asked_for() -> None:
    def functions() -> None:
        raise AssertionError("read")

    symbols = ImageSymbols(sample("amd64"), functions)  # type: ignore[arg-type]
    assert symbols.describe(0x10, "mod") == "0x10"
    with pytest.raises(AssertionError):
        symbols.place(sample("amd64").entry)


def test_a_loaded_image_is_known_where_it_was_loaded() -> None:
    image = sample("riscv64")
    symbols = ImageSymbols(image, bias=0x1000)
    address, _, _, _ = next(row for row in nm(image.path) if row[3] == "printk")
    assert symbols.describe(address + 0x1004, "") == f"{image.module}`printk+0x4"
    assert symbols.object_start(address + 0x1004, "func") == address + 0x1000


def test_copies_that_the_image_made_of_itself_have_its_names() -> None:
    image = sample("riscv64")
    address, _, _, _ = next(row for row in nm(image.path) if row[3] == "printk")
    distances = [0x1000]
    symbols = ImageSymbols(image, bias=0x1000, moved=MovedImage(image, lambda: distances).original)
    assert symbols.describe(address + 0x4000_0000, "mod") == f"{address + 0x4000_0000:#x}"
    distances.append(0x4000_0000)
    assert symbols.describe(address + 0x4000_0008, "") == f"{image.module}`printk+0x8"
    assert symbols.describe(address + 0x1008, "") == f"{image.module}`printk+0x8"
    assert symbols.object_start(address + 0x4000_0008, "sym") == symbols.object_start(address + 0x1008, "sym")


def test_a_copy_between_segments_that_are_far_apart_has_its_names(tmp_path: Path) -> None:
    """Linux on amd64 links its per-CPU data at 0: its code in the identity map lies between them and the rest."""
    text, low = 0xFFFF_FFFF_8010_0000, Part(".percpu", 0, bytes(64), 6)
    path = tmp_path / "far.elf"
    path.write_bytes(elf64(EM_X86_64, text, [Part(".text", text, b"\x90" * 64, 5), low], [Symbol("early", text, 64)]))
    distances = [0, 0x10_0000 - text]
    symbols = ImageSymbols(open_image(path), moved=MovedImage(open_image(path), lambda: distances).original)
    assert symbols.describe(0x10_0008, "").endswith("`early+0x8")


def test_aliases_prefer_what_is_global_and_then_the_first() -> None:
    image = sample("riscv64")
    data = next(segment for segment in image.segments if not segment.flags & 1).address
    rows = {
        "label": (data, 0, 0, 1),
        "local": (data, 8, 1, 0),
        "weak": (data, 8, 1, 2),
        "zeta": (data, 8, 1, 1),
        "alpha": (data, 8, 1, 1),
        "inner": (data + 16, 0, 0, 0),
        "outer": (data + 8, 64, 1, 0),
    }
    symbols = ImageSymbols(image, symbols=symbol_table(rows))
    assert symbols.describe(data + 2, "") == f"{image.module}`zeta+0x2"
    assert symbols.describe(data + 16, "") == f"{image.module}`inner"
    assert symbols.describe(data + 20, "") == f"{image.module}`outer+0xc"  # a label names one byte only
