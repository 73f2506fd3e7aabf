"""Plans written to files: the contract by an independent comparison, restoring, rewriting again, leaving nothing."""

import hashlib
import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.planning.layout import Layout, lay_out
from kinst.rewriter.planning.plan import Plan
from kinst.rewriter.rewriting import Opened, Source, open_source, plan_probes
from kinst.rewriter.writing.restore import open_original, restore
from kinst.rewriter.writing.write import new_file, write_image
from kinst.targets.errors import KinstError, ManifestError, PlacementError, ProbeError, UsageError
from kinst.targets.image import open_image
from kinst.targets.instruction import Reason, Verdict
from kinst.targets.manifest.packed import Manifest, find_manifest
from kinst.targets.probe import parse_probe_names
from tests.contract import check_contract, read_elf
from tests.rewriter.programs import FUNCTIONS, Small, small
from tests.writers.elf import EM_RISCV, EM_X86_64, Part, Symbol, elf64

ROOT = Path(__file__).parent.parent.parent
SAMPLES = [ROOT / "samples" / f"kernel-{machine}.elf" for machine in ("amd64", "arm64", "riscv64")]


def planned(path: Path, *specs: str, base: int | None = None) -> tuple[Opened, Plan]:
    opened = open_source(Source(path))
    names = [name for spec in specs for name in parse_probe_names(spec)]
    return opened, plan_probes(opened, names, trampoline_base=base)[1]


def rewritten(path: Path, out: Path, *specs: str, base: int | None = None, symbols: bool = False) -> Manifest:
    _, plan = planned(path, *specs, base=base)
    return write_image(plan, out, trampoline_symbols=symbols)


def restored(path: Path, out: Path) -> bytes:
    image = open_image(path)
    manifest = find_manifest(image)
    assert manifest is not None
    restore(image, manifest, out)
    return out.read_bytes()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("specs", [["fbt:::entry"], ["fbt:::return"], ["kinst:::"], ["*:::"]], ids=str)
def test_the_samples_keep_the_contract(path: Path, specs: Sequence[str], tmp_path: Path) -> None:
    out = tmp_path / "p.elf"
    manifest = rewritten(path, out, *specs)
    sites = check_contract(path.read_bytes(), out.read_bytes())
    assert len(sites) == len(manifest.sites) > 0
    assert restored(out, tmp_path / "back.elf") == path.read_bytes()
    assert out.stat().st_mode == path.stat().st_mode


@pytest.mark.parametrize("spare", [True, False], ids=["spare entry", "table moves"])
def test_the_new_segment_takes_a_spare_entry_or_the_table_moves(spare: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path, out = small(spare_header=spare).write(tmp_path), tmp_path / "p.elf"
    rewritten(path, out, "kinst:::")
    check_contract(path.read_bytes(), out.read_bytes())
    before, after = read_elf(path.read_bytes()), read_elf(out.read_bytes())
    assert (after.phoff == before.phoff) == spare
    assert len(after.segments) == len(before.segments) + (not spare)
    addresses = [row[3] for row in after.segments if row[0] == 1]
    assert addresses == sorted(addresses)
    assert restored(out, tmp_path / "back.elf") == path.read_bytes()


def test_a_moved_table_is_sorted_and_its_phdr_entry_follows(tmp_path: Path) -> None:
    """Trampolines below the code: their PT_LOAD must come first, and PT_PHDR must describe where the table is now."""
    data = bytearray(small(spare_header=True).data)
    entry = 0x40 + 56 * 2
    data[entry : entry + 56] = struct.pack("<IIQQQQQQ", 6, 4, 0x40, 0x1000, 0x1000, 168, 168, 8)
    path, out = tmp_path / "phdr.elf", tmp_path / "p.elf"
    path.write_bytes(data)
    rewritten(path, out, "kinst:::", base=0xFFFF_FFFF_8000_0000)
    check_contract(path.read_bytes(), out.read_bytes())
    rows = read_elf(out.read_bytes()).segments
    assert [row[0] for row in rows] == [1, 1, 1, 6] and rows[0][3] == 0xFFFF_FFFF_8000_0000
    phdr = rows[3]
    assert phdr[2] == read_elf(out.read_bytes()).phoff and phdr[5] == phdr[6] == 56 * 4
    assert rows[0][3] <= phdr[3] and phdr[3] + phdr[6] <= rows[0][3] + rows[0][6]
    assert phdr[2] - rows[0][2] == phdr[3] - rows[0][3]
    assert restored(out, tmp_path / "back.elf") == bytes(data)


def stripped_of_sections(data: bytes) -> bytes:
    header = bytearray(data)
    header[40:48], header[58:64] = bytes(8), bytes(6)
    return bytes(header)


def test_an_image_without_a_section_table_gets_one_and_loses_it_again(tmp_path: Path) -> None:
    path, out = tmp_path / "bare.elf", tmp_path / "p.elf"
    path.write_bytes(stripped_of_sections(small().data))
    rewritten(path, out, "kinst:::")
    check_contract(path.read_bytes(), out.read_bytes())
    assert read_elf(out.read_bytes()).names == ["", ".kinst.text", ".kinst.manifest", ".kinst.shstrtab"]
    assert restored(out, tmp_path / "back.elf") == path.read_bytes()
    # And again: the patched file's own sections must not hide the code.
    more = tmp_path / "more.elf"
    rewritten(out, more, "fbt:::")
    check_contract(path.read_bytes(), more.read_bytes())


def test_bytes_after_the_last_header_stay(tmp_path: Path) -> None:
    path, out = tmp_path / "tail.elf", tmp_path / "p.elf"
    path.write_bytes(small().data + b"a signature that somebody appended")
    rewritten(path, out, "fbt:::entry")
    check_contract(path.read_bytes(), out.read_bytes())
    assert restored(out, tmp_path / "back.elf") == path.read_bytes()


@pytest.mark.parametrize("strip", [False, True], ids=["with .symtab", "without"])
def test_trampoline_symbols_extend_copies_of_the_tables(strip: bool, tmp_path: Path) -> None:  # noqa: FBT001
    data = small().data
    path, out = tmp_path / "small.elf", tmp_path / "p.elf"
    path.write_bytes(stripped_of_sections(data) if strip else data)
    manifest = rewritten(path, out, "kinst:::", symbols=True)
    check_contract(path.read_bytes(), out.read_bytes())
    symbols = open_image(out).symbols
    for row in range(len(manifest.sites)):
        function = int(manifest.sites["function"][row])
        offset = int(manifest.sites["address"][row]) - int(manifest.functions["address"][function])
        name = f"kinst${manifest.function_name(function)}+{offset}"
        assert symbols.address_of(name) == int(manifest.sites["trampoline"][row])
    assert restored(out, tmp_path / "back.elf") == path.read_bytes()


def test_rewriting_a_patched_image_adds_to_it(tmp_path: Path) -> None:
    path, first, second = small().write(tmp_path), tmp_path / "1.elf", tmp_path / "2.elf"
    one = rewritten(path, first, "kinst::vm_fault:4", "fbt::spin:entry")
    two = rewritten(first, second, "kinst::vm_fault:", "fbt::vm_fault:entry", "kinst::spin:0")
    names = [two.probe_name(row).split(":", 2)[2] for row in range(len(two.probes))]
    assert names[:2] == [one.probe_name(row).split(":", 2)[2] for row in range(2)], "earlier probes keep their ids"
    assert sorted(names) == sorted(
        ["vm_fault:4", "spin:entry", *(f"vm_fault:{at}" for at in (5, 8, 10, 12, 13, 14)), "vm_fault:entry", "spin:0"]
    )
    assert two.options == (
        "kinst::vm_fault:4",
        "fbt::spin:entry",
        "kinst::vm_fault:",
        "fbt::vm_fault:entry",
        "kinst::spin:0",
    )
    assert two.original_sha256 == hashlib.sha256(path.read_bytes()).hexdigest() == one.original_sha256
    check_contract(path.read_bytes(), second.read_bytes())
    assert restored(second, tmp_path / "back.elf") == path.read_bytes()


def test_adding_what_is_there_changes_nothing_but_the_options(tmp_path: Path) -> None:
    path, first, second = small().write(tmp_path), tmp_path / "1.elf", tmp_path / "2.elf"
    rewritten(path, first, "*:::")
    rewritten(first, second, "*:::")
    assert first.read_bytes() == second.read_bytes()


def test_an_addition_in_one_go_and_in_steps_patch_the_same(tmp_path: Path) -> None:
    path = SAMPLES[0]
    rewritten(path, tmp_path / "both.elf", "kinst::k*:", "fbt:::return")
    rewritten(path, tmp_path / "1.elf", "fbt:::return")
    rewritten(tmp_path / "1.elf", tmp_path / "2.elf", "kinst::k*:")
    both, steps = (find_manifest(open_image(tmp_path / name)) for name in ("both.elf", "2.elf"))
    assert both is not None and steps is not None
    for field in ("address", "trampoline", "original", "size", "kind", "verdict", "flow"):
        assert np.array_equal(both.sites[field], steps.sites[field]), field
    names = [{one.probe_name(row) for row in range(len(one.probes))} for one in (both, steps)]
    assert names[0] == names[1]


def test_bounds_that_contradict_an_earlier_rewriting_are_refused(tmp_path: Path) -> None:
    """Under a System.map that starts a function inside an instruction, the second probe would split a patched one."""
    path, out = small().write(tmp_path), tmp_path / "p.elf"
    rewritten(path, out, "kinst::vm_fault:5")
    names = tmp_path / "System.map"
    names.write_text("ffffffff80100006 T odd\nffffffff80100040 T next\n")
    opened = open_source(Source(out, symbols=names))
    with pytest.raises(ProbeError, match="inside the instruction at 0xffffffff80100005"):
        plan_probes(opened, parse_probe_names("kinst::0xffffffff80100006:"))


def test_writing_over_the_image_itself_is_atomic_and_can_be_undone(tmp_path: Path) -> None:
    image = small()
    path = image.write(tmp_path)
    rewritten(path, path, "kinst:::")
    check_contract(image.data, path.read_bytes())
    assert restored(path, path) == image.data
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_link_is_followed(tmp_path: Path) -> None:
    path = small().write(tmp_path)
    (tmp_path / "link.elf").symlink_to(path)
    rewritten(path, tmp_path / "link.elf", "kinst:::")
    assert (tmp_path / "link.elf").is_symlink() and find_manifest(open_image(path)) is not None


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, MemoryError])
def test_a_failure_leaves_nothing_and_spoils_nothing(failure: type[BaseException], tmp_path: Path) -> None:
    """Raised in the middle of copying, as Ctrl-C or a full disk would be."""

    def stage(name: str, total: int) -> object:
        raise failure(name)

    path, out = small().write(tmp_path), tmp_path / "p.elf"
    out.write_bytes(b"older")
    _, plan = planned(path, "kinst:::")
    with pytest.raises(failure):
        write_image(plan, out, progress=stage)  # type: ignore[arg-type]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["p.elf", "small.elf"]
    assert out.read_bytes() == b"older"


def test_only_a_regular_file_can_be_an_output(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"), new_file(tmp_path, 0o644):
        pass
    with pytest.raises(UsageError, match="not written to standard output"), new_file(Path("-"), 0o644):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"), new_file(tmp_path / "pipe", 0o644):
        pass
    with pytest.raises(FileNotFoundError), new_file(tmp_path / "no" / "such", 0o644):
        pass


def test_an_original_that_was_changed_after_patching_is_not_passed_off_as_restored(tmp_path: Path) -> None:
    path, out = small().write(tmp_path), tmp_path / "p.elf"
    rewritten(path, out, "fbt:::entry")
    data = bytearray(out.read_bytes())
    data[data.index(bytes(range(64)))] ^= 1  # a byte of .data
    out.write_bytes(data)
    with pytest.raises(ManifestError, match="changed after it was patched"):
        restored(out, tmp_path / "back.elf")
    with pytest.raises(ManifestError, match="changed after it was patched"):
        open_original(out)
    assert not (tmp_path / "back.elf").exists()


def test_a_damaged_manifest_is_refused_wherever_the_damage_is(tmp_path: Path) -> None:
    path, out = small().write(tmp_path), tmp_path / "p.elf"
    rewritten(path, out, "fbt:::entry")
    section = open_image(out).section(".kinst.manifest")
    assert section is not None
    data = out.read_bytes()
    for offset in range(section.offset, section.offset + section.size, 7):
        broken = bytearray(data)
        broken[offset] ^= 0x10
        out.write_bytes(broken)
        with pytest.raises(ManifestError, match="damaged"):
            open_original(out)


def test_a_patched_image_is_read_as_its_original(tmp_path: Path) -> None:
    path, out = small().write(tmp_path), tmp_path / "p.elf"
    rewritten(path, out, "kinst:::")
    image, manifest = open_original(out, "small")
    assert manifest is not None and image.data.tobytes() == path.read_bytes() and image.path == out
    plain, none = open_original(path)
    assert none is None and plain.data.tobytes() == path.read_bytes()


def test_a_base_out_of_reach_is_an_error_for_what_needs_to_reach(tmp_path: Path) -> None:
    path = small(functions={"near": "mov 0x100(%rip), %rax; nop; ret", "end": "ret"}).write(tmp_path)
    with pytest.raises(PlacementError, match="out of reach of 1 sites, the first at 0xffffffff80100000"):
        planned(path, "kinst:::", base=1 << 32)
    assert planned(path, "kinst::near:7", base=1 << 32)[1].placement.address == 1 << 32


def test_sites_that_the_default_place_cannot_serve_are_refused_and_the_rest_is_patched(tmp_path: Path) -> None:
    """Most of the code is at the top of the address space; a function with a RIP-relative operand is far away."""
    top, below = 0xFFFF_FFFF_8000_0000, 0x4000_0000_0000
    main = b"\x90" * 40 + b"\xc3"
    far = b"\x48\x8b\x05\x00\x10\x00\x00\x90\xc3"  # mov 0x1000(%rip), %rax; nop; ret
    parts = [
        Part(".far", below, far, 5, load_address=0x1000_0000),
        Part(".text", top, main, 5, load_address=0x2000_0000),
    ]
    data = elf64(EM_X86_64, 0x2000_0000, parts, [Symbol("far", below, len(far)), Symbol("main", top, len(main))])
    path, out = tmp_path / "two.elf", tmp_path / "p.elf"
    path.write_bytes(data)
    _, plan = planned(path, "kinst:::")
    assert plan.lost.counts() == {Reason.OUT_OF_REACH: 1}
    assert len(plan.manifest.sites) == len(plan.manifest.probes) == 43
    assert (plan.manifest.enablings["site"] == np.arange(43)).all()
    write_image(plan, out)
    check_contract(data, out.read_bytes())


def test_every_slot_byte_that_no_trampoline_uses_is_a_breakpoint(tmp_path: Path) -> None:
    path = SAMPLES[2]
    _, plan = planned(path, "kinst:::")
    sites = plan.manifest.sites
    at = ((sites["trampoline"] - np.uint64(plan.placement.address)) // np.uint64(8)).astype(np.int64)
    slots = plan.trampolines.view("<u4").reshape(-1, 2)
    free = np.ones(len(slots), np.bool_)
    free[at[sites["verdict"] == Verdict.COPY]] = False
    assert (slots[free] == 0x0010_0073).all()
    assert (slots[:, 1] == 0x0010_0073).all()


def test_a_layout_is_the_same_every_time(tmp_path: Path) -> None:
    _, plan = planned(SAMPLES[1], "*:::")
    first, second = (lay_out(plan, "0" * 64) for _ in range(2))
    assert _bytes(first) == _bytes(second)
    assert [piece.what for piece in first.appended][-1] == "section headers"


def _bytes(layout: Layout) -> list[tuple[int, bytes]]:
    return [(piece.offset, b"".join(piece.parts)) for piece in (*layout.changes, *layout.appended)]


def test_a_compressed_site_at_the_end_of_a_segment_is_read_no_further(tmp_path: Path) -> None:
    """The last instruction is two bytes long and the file ends with it: 16 bytes of original are not there."""
    code = b"\x13\x05\x15\x00" + b"\x82\x80"  # addi a0, a0, 1; ret
    data = elf64(EM_RISCV, 0x8000_0000, [Part(".text", 0x8000_0000, code, 5)], [Symbol("f", 0x8000_0000, 6)])
    path, out = tmp_path / "end.elf", tmp_path / "p.elf"
    path.write_bytes(data)
    manifest = rewritten(path, out, "kinst:::")
    assert bytes(manifest.sites["original"][1]) == b"\x82\x80" + bytes(14)
    check_contract(data, out.read_bytes())


def test_the_plan_is_a_value(tmp_path: Path) -> None:
    """Two plans from one opened image do not touch each other."""
    opened = open_source(Source(small().write(tmp_path)))
    first = plan_probes(opened, parse_probe_names("kinst::spin:"))[1]
    before = replace(first.manifest).sites.tobytes()
    plan_probes(opened, parse_probe_names("kinst:::"))
    assert first.manifest.sites.tobytes() == before


def test_nothing_is_patched_for_a_name_that_comes_to_nothing(tmp_path: Path) -> None:
    with pytest.raises(KinstError, match="no function 'nope'"):
        planned(Small(small().data, {}).write(tmp_path), "kinst::nope:", "kinst::spin:0")
    assert "nope" not in FUNCTIONS
