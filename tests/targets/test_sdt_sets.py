"""FreeBSD's linker sets, built byte by byte: what is read of them, and what is left out."""

import struct
from pathlib import Path

import pytest

from kinst.targets.arch.registry import NAMES
from kinst.targets.image import open_image
from kinst.targets.sdt_sets import SdtRecord, sdt_records
from tests.writers.elf import EM_X86_64, Part, elf64

SAMPLES = Path(__file__).parents[2] / "samples"
TEXT, DATA, SETS = 0xFFFF_FFFF_8010_0000, 0xFFFF_FFFF_8020_0000, 0xFFFF_FFFF_8030_0000


class Data:
    """A data segment that grows."""

    def __init__(self) -> None:
        self.content = bytearray(64)

    def put(self, data: bytes) -> int:
        self.content += bytes(-len(self.content) % 8)
        self.content += data
        return DATA + len(self.content) - len(data)

    def text(self, text: bytes) -> int:
        return self.put(text + b"\0") if text else 0

    def probe(self, provider: bytes, texts: tuple[bytes, bytes, bytes], size: int = 88) -> int:
        name = self.put(struct.pack("<Q", self.text(provider)))
        pointers = [self.text(text) for text in texts]
        before = 40 if size == 88 else 56
        return self.put(struct.pack("<QQ", size, name) + bytes(before - 8) + struct.pack("<QQQ", *pointers) + bytes(24))

    def argument(self, probe: int, index: int, kind: bytes, translated: bytes = b"") -> int:
        fields = index, self.text(kind), self.text(translated), 0, 0, probe
        return self.put(struct.pack("<QQQQQQ", *fields))

    def tracepoint(self, probe: int, nop: int, target: int) -> int:
        return self.put(struct.pack("<QQQQ", probe, nop, target, 0))


def records(folder: Path, data: Data, **sets: bytes) -> tuple[SdtRecord, ...]:
    parts = [Part(".text", TEXT, bytes([0x90] * 64), 5), Part(".data", DATA, bytes(data.content), 6)]
    names = {"probes": "set_sdt_probes_set", "types": "set_sdt_argtypes_set", "points": "set_sdt_tracepoint_set"}
    for number, (name, content) in enumerate(sets.items()):
        parts.append(Part(names[name], SETS + 0x10000 * number, content, 4))
    path = folder / "image.elf"
    path.write_bytes(elf64(EM_X86_64, TEXT, parts))
    return sdt_records(open_image(path))


def pointers(*addresses: int) -> bytes:
    return struct.pack(f"<{len(addresses)}Q", *addresses)


@pytest.mark.parametrize("size", [88, 104])
def test_both_forms(tmp_path: Path, size: int) -> None:
    data = Data()
    probe = data.probe(b"vfs", (b"kern", b"namei", b"lookup__hit"), size)
    other = data.probe(b"vfs", (b"", b"", b"done"), size)
    types = [
        data.argument(probe, 2, b"char *"),
        data.argument(probe, 0, b"struct vnode *", b"vnodeinfo_t *"),
        data.argument(other, 99, b"int"),
        data.argument(other, 0, b""),
    ]
    points = [data.tracepoint(probe, TEXT + 1, TEXT + 9), data.tracepoint(probe, TEXT + 3, TEXT + 11)]
    first, second = records(
        tmp_path, data, probes=pointers(probe, other, probe), types=pointers(*types), points=pointers(*points)
    )
    id_word = probe + (72 if size == 88 else 88)
    branches = ((TEXT + 1, TEXT + 9), (TEXT + 3, TEXT + 11))
    expected_types = ("vnodeinfo_t *", "uintptr_t", "char *")
    assert first == SdtRecord(
        probe, "vfs", "kern", "namei", "lookup__hit", id_word, expected_types, branches, size == 104
    )
    assert (second.module, second.function, second.name, second.types, second.branches) == ("", "", "done", (), ())


def test_what_is_damaged_is_left_out(tmp_path: Path) -> None:
    data = Data()
    good = data.probe(b"p", (b"", b"", b"good"))
    wrong = [
        data.probe(b"p", (b"", b"", b"size"), 96),
        data.probe(b"", (b"", b"", b"anonymous")),
        data.probe(b"a:b", (b"", b"", b"provider")),
        data.probe(b"p", (b"", b"", b"")),
        data.probe(b"p", (b"", b"", b"two words")),
        data.probe(b"p", (b"m:", b"", b"module")),
        data.probe(b"p", (b"", b"", b"n" * 300)),
        0,
        TEXT,
        DATA + 0x10_0000,
        (1 << 64) - 1,
    ]
    types = pointers(0, DATA - 8, (1 << 64) - 4, data.argument(1, 0, b"int"))
    found = records(
        tmp_path, data, probes=pointers(good, *wrong) + b"\1\2\3", types=types, points=pointers(0, good, 1 << 63)
    )
    assert [record.name for record in found] == ["good"]


def test_an_image_without_sets_has_none(tmp_path: Path) -> None:
    assert records(tmp_path, Data()) == ()


@pytest.mark.parametrize("arch", NAMES)
def test_the_sample_kernels_declare_the_types_of_theirs(arch: str) -> None:
    found = sdt_records(open_image(SAMPLES / f"kernel-{arch}.elf"))
    assert {(one.provider, one.name, one.types) for one in found} == {
        ("callout_execute", "callout_start", ("struct callout *",)),
        ("callout_execute", "callout_end", ("struct callout *",)),
    }
