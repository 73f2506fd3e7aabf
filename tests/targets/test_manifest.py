"""The manifest: packed and read back, damaged in every byte, of other formats, and at the size of a kernel."""

import struct
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zstandard

from kinst.targets.errors import ManifestError
from kinst.targets.manifest.packed import (
    ENABLING,
    FORMAT_VERSION,
    FUNCTION,
    JUMPS,
    NUMBER,
    PROBE,
    SITE,
    Manifest,
    ProbeKind,
    pack_manifest,
    unpack_manifest,
)
from kinst.targets.manifest.seal import MIXED_VERSION, sealed
from kinst.targets.manifest.tables import packed_table, read_tables
from kinst.targets.patch import LONGEST, Patch
from kinst.targets.standalone import WORD, Action, Standalone, note_of


def manifest_of(count: int) -> Manifest:
    """A manifest of `count` sites, one kinst probe each, in two functions."""
    sites = np.zeros(count, SITE)
    sites["address"] = 0xFFFF_FFFF_8000_0000 + 4 * np.arange(count, dtype=np.uint64)
    sites["trampoline"] = 0xFFFF_FFFF_F000_0000 + 16 * np.arange(count, dtype=np.uint64)
    sites["original"] = b"\x13\x05\x15\x00"
    sites["size"] = 4
    sites["function"] = np.arange(count) % 2
    probes = np.zeros(count, PROBE)
    probes["offset"] = 4 * np.arange(count)
    probes["function"] = sites["function"]
    enablings = np.zeros(count, ENABLING)
    enablings["site"] = enablings["probe"] = np.arange(count)
    functions = np.array([(0xFFFF_FFFF_8000_0000, 4 * count + 64, name) for name in (0, 9)], FUNCTION)
    return Manifest(
        tool_version="0.1.0",
        original_sha256="ab" * 32,
        original_size=123_456,
        arch="riscv64",
        module="kernel",
        method="trap",
        options=("kinst::vm_*:", "fbt:::entry"),
        trampolines=(0xFFFF_FFFF_F000_0000, 16 * count + -16 * count % 4096),
        restore=((40, b"\x01\x02\x03"), (64, bytes(56))),
        sites=sites,
        probes=probes,
        enablings=enablings,
        functions=functions,
        names="vm_fault\0größe\0".encode(),
        numbers=np.array([(4096, 5000), (4098, 6000)], NUMBER),
        next_identifier=7000,
    )


def assert_equal(left: Manifest, right: Manifest) -> None:
    for name in Manifest.__slots__:
        mine, other = getattr(left, name), getattr(right, name)
        assert np.array_equal(mine, other) if isinstance(mine, np.ndarray) else mine == other, name


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_it_reads_back_as_it_was_packed(count: int) -> None:
    manifest = manifest_of(count)
    data = pack_manifest(manifest)
    assert_equal(unpack_manifest(data), manifest)
    assert pack_manifest(unpack_manifest(data)) == data


def test_names_and_probes_are_spelled_as_dtrace_has_them() -> None:
    manifest = manifest_of(4)
    assert manifest.function_name(1) == "größe"
    assert manifest.probe_name(3) == "kinst:kernel:größe:12"
    probes = manifest.probes.copy()
    probes["kind"] = [ProbeKind.FBT_ENTRY, ProbeKind.FBT_RETURN, 0, 0]
    changed = replace(manifest, probes=probes)
    assert changed.probe_name(0) == "fbt:kernel:vm_fault:entry"
    assert changed.probe_name(1) == "fbt:kernel:größe:return"


def test_a_change_of_any_byte_is_found() -> None:
    data = pack_manifest(manifest_of(3))
    for offset in range(len(data)):
        for bit in (1, 0x80):
            broken = bytearray(data)
            broken[offset] ^= bit
            with pytest.raises(ManifestError, match="damaged"):
                unpack_manifest(bytes(broken))


def test_a_cut_at_any_byte_is_found() -> None:
    data = pack_manifest(manifest_of(3))
    for size in range(len(data)):
        with pytest.raises(ManifestError, match="damaged"):
            unpack_manifest(data[:size])
    with pytest.raises(ManifestError, match="damaged"):
        unpack_manifest(data + bytes(8))


@pytest.mark.parametrize("version", [*range(FORMAT_VERSION), MIXED_VERSION + 1, 1 << 31])
def test_another_format_says_so(version: int) -> None:
    """Whatever else there may be in it."""
    other = b"KINSTMAN" + struct.pack("<I", version), b"what another version has to say"
    data = other[0] + struct.pack("<I", zlib.crc32(b"".join(other))) + other[1]
    read = f"{FORMAT_VERSION} and {MIXED_VERSION}"
    what = rf"format {version}, and this kinst-rewrite reads {read}: patch the original again, or use"
    with pytest.raises(ManifestError, match=what):
        unpack_manifest(data)


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        ("sites", "function", 2),
        ("probes", "function", 9),
        ("probes", "kind", 3),
        ("enablings", "site", 4),
        ("enablings", "probe", 4),
        ("functions", "name", 1000),
        ("sites", "address", 0),
        ("sites", "trampoline", 0xFFFF_FFFF_F000_1000),
        ("sites", "trampoline", 0xFFFF_FFFF_EFFF_FFF8),
        ("sites", "size", 0),
        ("sites", "size", 17),
        ("sites", "verdict", 2),
        ("sites", "verdict", 1),  # its kind is one of those that run in trampolines only
        ("sites", "kind", 250),
        ("sites", "flow", 8),
        ("sites", "trampoline", 0xFFFF_FFFF_F000_0031),  # in the middle of a slot
        ("sites", "trampoline", 0xFFFF_FFFF_F000_0020),  # another site's slot
        ("sites", "address", 0xFFFF_FFFF_FFFF_FFFE),
        ("sites", "address", 0xFFFF_FFFF_8000_0009),  # inside the instruction before
        ("sites", "function", 0),  # its probe is in the other
        ("probes", "offset", 8),
        ("probes", "kind", 1),  # an offset, and no instruction
        ("probes", "function", 0),
        ("enablings", "probe", 2),  # one probe twice at a site, and one without a site
        ("functions", "size", 8),
        ("functions", "size", (1 << 64) - 1),
        ("functions", "name", 3),  # the middle of a name
    ],
)
def test_records_that_contradict_each_other_are_refused(table: str, field: str, value: int) -> None:
    manifest = manifest_of(4)
    rows = getattr(manifest, table).copy()
    rows[field][-1] = value
    data = pack_manifest(replace(manifest, **{table: rows}))
    with pytest.raises(ManifestError, match="damaged"):
        unpack_manifest(data)


@pytest.mark.parametrize("restore", [((-1, b"x"),), ((123_456, b"x"),), ((1 << 60, b"x"),)])
def test_header_bytes_outside_the_original_are_refused(restore: tuple[tuple[int, bytes], ...]) -> None:
    data = pack_manifest(replace(manifest_of(1), restore=restore))
    with pytest.raises(ManifestError, match=r"bytes that the original did not have|out of range"):
        unpack_manifest(data)


def test_a_million_sites_stay_small_and_load() -> None:
    data = pack_manifest(manifest_of(1_000_000))
    assert len(data) <= 2 * 1_000_000, "these differ by little; 64 bytes a site are the most there may be"
    manifest = unpack_manifest(data)
    assert len(manifest.sites) == 1_000_000


@pytest.mark.parametrize(
    "names", [b"vm_fault\0gr\xff\0", b"vm_fault\0a\x1b[2J\0", b"vm_fault\0a\nb\0", b"vm_fault\0ab"]
)
def test_names_that_no_terminal_should_see_are_refused(names: bytes) -> None:
    with pytest.raises(ManifestError, match="characters that no name has"):
        unpack_manifest(pack_manifest(replace(manifest_of(4), names=names)))


@pytest.mark.parametrize("option", ["BEGIN{system(1)}", "fbt:::entry {}", "#pragma", "a;b", "", "a\nb"])
def test_what_was_asked_for_is_a_name_and_no_program(option: str) -> None:
    """`kinst-run` compiles it."""
    with pytest.raises(ManifestError, match="damaged"):
        unpack_manifest(pack_manifest(replace(manifest_of(4), options=(option,))))


@pytest.mark.parametrize("option", ["fbt::internal/cpu.Initialize:entry", "kinst::0x10:", "kinst::core$fmt$f:", ":::"])
def test_names_of_every_language_are_asked_for(option: str) -> None:
    assert unpack_manifest(pack_manifest(replace(manifest_of(4), options=(option,)))).options == (option,)


@pytest.mark.parametrize("head", [b"[" * 100_000, b"[]", b"{}", b'{"records": 7}', b"\xff", b"9" * 5000, b'{"a": NaN}'])
def test_a_head_that_is_none_is_refused(head: bytes) -> None:
    with pytest.raises(ManifestError, match="damaged"):
        unpack_manifest(b"".join(sealed(memoryview(head))))


@pytest.mark.parametrize(
    "change",
    [{"original_size": 1 << 60}, {"arch": "vax"}, {"method": "magic"}, {"module": "\x1b[2J"}, {"original_sha256": "ab"},
     {"next_identifier": 1 << 60}, {"next_identifier": 5}, {"trampolines": (1 << 64, 0)},
     {"trampolines": ((1 << 64) - 4096, 8192)}],
)  # fmt: skip
def test_fields_are_bounded(change: dict[str, Any]) -> None:
    with pytest.raises(ManifestError, match="damaged"):
        unpack_manifest(pack_manifest(replace(manifest_of(4), **change)))


def test_a_digest_is_part_of_the_format() -> None:
    """Of bytes that the CRC happens to fit."""
    data = bytearray(pack_manifest(manifest_of(1)))
    data[40] ^= 1
    data[12:16] = struct.pack("<I", zlib.crc32(bytes(data[:12] + data[16:])))
    with pytest.raises(ManifestError, match="its SHA-256 does not match"):
        unpack_manifest(bytes(data))


@pytest.mark.parametrize(
    "table",
    [
        np.array([0, (1 << 64) - 1, 1, 1 << 63, 127, 128, 255, 256], [("a", "<u8")]),
        np.array([(1, 2, 3)], [("a", "<u8"), ("b", "<u4"), ("c", "u1")]),
        np.array([(200, 1 << 15), (0, 0), (255, (1 << 16) - 1)], [("a", "u1"), ("b", "<u2")]),
        np.frombuffer("größe\0".encode(), np.uint8),
        np.array([(b"\1\2", 2), (b"", 0), (bytes(range(1, 17)), 16)], [("original", "V16"), ("size", "u1")]),
    ],
)
def test_any_table_is_read_back(table: np.ndarray[Any, Any]) -> None:
    data, records = packed_table(table), {"t": table.dtype}
    found = dict(read_tables(memoryview(data), {"t": len(table)}, records, 1 << 20))["t"]
    assert found.dtype == table.dtype and found.tobytes() == table.tobytes()
    assert not found.flags.writeable
    for count in (len(table) - 1, len(table) + 1):
        with pytest.raises(ValueError, match=r"longer|shorter|follow|at most|cannot be"):
            dict(read_tables(memoryview(data), {"t": count}, records, 1 << 20))


def test_a_table_that_is_longer_than_it_may_be_is_not_unpacked() -> None:
    """A bomb: a few bytes that stand for a gigabyte."""
    frame = zstandard.ZstdCompressor().compress(bytes(1 << 24))
    bomb = memoryview(len(frame).to_bytes(8, "little") + frame)
    assert len(bomb) < 4096
    names = {"names": np.dtype("u1")}
    with pytest.raises(ValueError, match="out of range"):
        dict(read_tables(bomb, {"names": (1 << 24) + 1}, names, 1 << 24))
    with pytest.raises(ValueError, match="more than 16 MiB"):
        dict(read_tables(bomb, {"a": 1 << 23, "b": 1 << 24}, dict.fromkeys("ab", np.dtype("u1")), 1 << 24))
    with pytest.raises(ValueError, match="at most 1000"):
        dict(read_tables(bomb, {"names": 1000}, names, 1 << 24))
    streamed = zstandard.ZstdCompressor().compressobj().compress(bytes(9)) or b"\x28\xb5\x2f\xfd\0\x58\0\0"
    with pytest.raises(ValueError, match="do not say"):
        dict(read_tables(memoryview(len(streamed).to_bytes(8, "little") + streamed), {"names": 9}, names, 1 << 24))


def test_a_width_that_cannot_be_is_damage() -> None:
    content = bytearray(zstandard.ZstdDecompressor().decompress(packed_table(np.array([1, 2], [("a", "<u2")]))[8:]))
    for width in (0, 3, 4, 255):
        content[0] = width
        frame = zstandard.ZstdCompressor().compress(bytes(content))
        data = memoryview(len(frame).to_bytes(8, "little") + frame)
        with pytest.raises(ValueError, match="width that cannot be"):
            dict(read_tables(data, {"t": 2}, {"t": np.dtype([("a", "<u2")])}, 1 << 20))


def jumping() -> Manifest:
    """A standalone manifest with two stretches of jumps."""
    plain = manifest_of(2)
    start = int(plain.sites["address"][0])
    return replace(
        plain,
        standalone=Standalone(Action.COUNT, 0x1000, 0x1000, WORD * 2, 0, ()),
        jumps=np.array([(start, 2), (start + 4, 3)], JUMPS),
        jump_originals=bytes(range(5)),
        jump_code=bytes(5),
    )


def test_jumps_are_read_back() -> None:
    assert_equal(unpack_manifest(pack_manifest(jumping())), jumping())


def mixed() -> Manifest:
    """One whose first site counts, and whose second one records nothing but that it was hit."""
    kept = Standalone(Action.MIX, 0x1000, 0x1000, 0, 4, forms=(("arg0", "time"), ()), counters=1)
    return replace(jumping(), standalone=replace(kept, size=kept.kept_size), forms=bytes([0, 2]))


def test_what_each_site_keeps_is_read_back_and_told_as_another_format() -> None:
    """Who does not know of it must not take the image for one without it."""
    packed = pack_manifest(mixed())
    assert_equal(unpack_manifest(packed), mixed())
    assert struct.unpack_from("<I", packed, 8) == (MIXED_VERSION,)
    assert struct.unpack_from("<I", pack_manifest(jumping()), 8) == (FORMAT_VERSION,)
    assert mixed().site_forms.tolist() == [-1, 1]
    assert jumping().site_forms.tolist() == [-1, -1]


@pytest.mark.parametrize(
    "changes",
    [
        {"forms": b""},
        {"forms": bytes([0])},
        {"forms": bytes([0, 3])},
        {"forms": bytes([1, 2])},
        {"forms": bytes(2)},
        {"standalone": jumping().standalone},
        {"standalone": replace(mixed().standalone, counters=2)},  # type: ignore[type-var]  # there is one
        {"standalone": replace(mixed().standalone, counters=1 << 40)},  # type: ignore[type-var]
        {"standalone": replace(mixed().standalone, forms=((),))},  # type: ignore[type-var]
    ],
)
def test_forms_that_cannot_be_are_damage(changes: dict[str, Any]) -> None:
    with pytest.raises(ManifestError, match=r"damaged: (sites whose|counters or)"):
        unpack_manifest(pack_manifest(replace(mixed(), **changes)))


def test_the_note_of_a_mix_says_the_form_of_each_site() -> None:
    kept, forms = mixed().standalone, mixed().forms
    assert kept is not None
    note = note_of(kept, 2, forms)
    owner, size, kind = struct.unpack_from("<III", note)
    assert (owner, kind, len(note)) == (6, 1, 20 + size)
    assert struct.unpack_from("<9Q", note, 20) == (2, 2, 0x1000, 0x1000, kept.size, 2, 4, 1, 11)
    assert note[20 + 72 :] == b"arg0,time;;".ljust(16, b"\0") + forms.ljust(8, b"\0")
    assert kept.ring == 0x1040


@pytest.mark.parametrize(
    "changes",
    [
        {"standalone": None},
        {"jump_code": bytes(4)},
        {"jump_originals": bytes(6)},
        {"jumps": np.array([(4096, 0), (8192, 5)], JUMPS)},
        {"jumps": np.array([(4096, 3), (4098, 2)], JUMPS)},
        {"jumps": np.array([(4096, 3), (4096, 2)], JUMPS)},
        {"jumps": np.array([(8192, 3), (4096, 2)], JUMPS)},
        {"jumps": np.array([((1 << 64) - 3, 5)], JUMPS)},
        {"jumps": np.array([(4096, (1 << 32) - 1), (1 << 33, 6)], JUMPS)},
    ],
)
def test_jumps_that_cannot_be_are_damage(changes: dict[str, Any]) -> None:
    with pytest.raises(ManifestError, match="damaged: jumps"):
        unpack_manifest(pack_manifest(replace(jumping(), **changes)))


def patched(**changes: Any) -> Manifest:
    """A manifest with two patches, the second one changed."""
    first, second = Patch(0x8000_0000, b"\1\0", b"\2\0", "f = nop"), Patch(0x8000_0002, b"\1\0", b"\2\0", "g = nop")
    return replace(manifest_of(2), patches=(first, replace(second, **changes)))


def test_patches_are_read_back() -> None:
    assert_equal(unpack_manifest(pack_manifest(patched())), patched())


@pytest.mark.parametrize(
    "changes",
    [
        {"address": 0x8000_0001},
        {"address": -1},
        {"address": 1 << 64},
        {"code": b"\2\0\2"},
        {"code": b"", "original": b""},
        {"code": bytes(LONGEST + 1), "original": bytes(LONGEST + 1)},
        {"text": "\x1b[31m"},
    ],
)
def test_a_patch_that_cannot_be_is_damage(changes: dict[str, Any]) -> None:
    with pytest.raises(ManifestError, match="damaged"):
        unpack_manifest(pack_manifest(patched(**changes)))
