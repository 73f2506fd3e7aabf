"""Where a patch may be: whole instructions of one function that nobody else writes to. The kernel is `small`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kinst.rewriter.patching.placing import add_patches, wrong_patches
from kinst.rewriter.patching.request import PatchRequest, parse_patch
from kinst.rewriter.program import Program, instructions_of, open_program, with_patches
from kinst.targets.errors import PatchError
from kinst.targets.image import open_image
from kinst.targets.instruction import Reason
from kinst.targets.manifest.packed import SITE
from kinst.targets.patch import Patch
from tests.rewriter.programs import STEP, TEXT, program, small
from tests.writers.elf import Symbol

NO_SITES = np.zeros(0, SITE)


def patched(before: Program, *texts: str, sites: np.ndarray = NO_SITES, force: bool = False) -> Program:
    def no_assembly(_program: Program, request: PatchRequest, _address: int) -> bytes:
        raise AssertionError(request)

    return add_patches(before, [parse_patch(text) for text in texts], sites, no_assembly, force=force)


def refusal(before: Program, *texts: str, sites: np.ndarray = NO_SITES, force: bool = False) -> str:
    with pytest.raises(PatchError) as error:
        patched(before, *texts, sites=sites, force=force)
    return str(error.value)


@pytest.fixture
def plain(tmp_path: Path) -> Program:
    return program(tmp_path)


@pytest.mark.parametrize(
    ("where", "code", "original", "written"),
    [
        ("vm_fault", "c3", "f30f1efa", "c3 0f1f00"),  # endbr64
        ("vm_fault+4", "31c0", "55 4889e5", "31c0 6690"),
        ("vm_fault+5", "90", "4889e5", "90 6690"),
        ("vm_fault + 0x8", "ebfe", "7404", "ebfe"),
        (f"{TEXT + 13:#x}", "90", "c3", "90"),
        (f"{TEXT:#x}+13", "90", "c3", "90"),
        (f"{TEXT + STEP:#x}+1", "90", "c3", "90"),
    ],
)
def test_whole_instructions_are_padded_with_nops(
    plain: Program, where: str, code: str, original: str, written: str
) -> None:
    found = patched(plain, f"{where} = hex:{code}")
    (patch,) = found.patches
    assert (patch.original, patch.code) == (bytes.fromhex(original), bytes.fromhex(written))
    assert found.image.read(patch.address, len(patch.code)) == patch.code
    assert found.original.read(patch.address, len(patch.code)) == patch.original
    assert not list(wrong_patches(found))
    rows = np.arange(len(found.functions))
    ends = instructions_of(found, rows)
    assert set(instructions_of(plain, rows).address.tolist()) >= {patch.address} <= set(ends.address.tolist())


@pytest.mark.parametrize(
    ("where", "code", "why"),
    [
        (
            "vm_fault+1",
            "90",
            "offset 1 is inside the instruction at 0; instructions start at 0, 4, 5, 8",
        ),
        ("vm_fault+0x100", "90", "offset 256 is past the end: vm_fault is 16 bytes long"),
        ("vm_fault+14", "909090", "3 bytes do not fit: vm_fault+0xe has 2 to the end of its function (--force"),
        ("vm_falt", "90", "no function 'vm_falt' in small; the nearest are vm_fault"),
        ("0x1000", "90", "0x1000 is not code: no section holds it"),
        ("0xffffffff80200000", "90", "is not code: it is in .data"),
        ("vm_fault+4", "0f", "0f are not whole instructions"),
        ("vm_fault+4", "e800", "e8 00 are not whole instructions"),
    ],
)
def test_a_place_that_will_not_do_says_why(plain: Program, where: str, code: str, why: str) -> None:
    assert why in refusal(plain, f"{where} = hex:{code}")


def test_force_writes_on_behind_the_end_of_the_function(plain: Program) -> None:
    """Over the padding, each int3 of which is an instruction, and into the next function, but not into its middle."""
    text = "vm_fault_quick+1 = hex:909090"
    assert "2 bytes" not in refusal(plain, text)
    (patch,) = patched(plain, text, force=True).patches
    assert patch.original == b"\xc3\xcc\xcc" and patch.code == b"\x90\x90\x90"
    (patch,) = patched(plain, f"vm_fault_quick+1 = hex:{'c3' * STEP}", force=True).patches
    assert patch.code == b"\xc3" * STEP + b"\x90"  # jmp helper.cold has two bytes
    assert "pass the end of the code" in refusal(plain, f"spin = hex:{'90' * 0x1000}", force=True)
    assert "too many for a patch" in refusal(plain, f"spin = hex:{'90' * 0x10001}", force=True)


def test_patches_do_not_overlap(plain: Program) -> None:
    first = "vm_fault+4 = hex:90"
    assert "vm_fault+0x4 is patched already" in refusal(plain, first, "vm_fault+4 = hex:c3")
    found = patched(plain, "vm_fault+5 = hex:9090", first)  # in any order, side by side
    assert [patch.address - TEXT for patch in found.patches] == [4, 5]
    assert "vm_fault+0x4 is patched already: vm_fault+4 = hex:90" in refusal(found, "vm_fault = hex:90 90 90 90 90")


@pytest.mark.parametrize(
    ("offset", "original", "size", "claim"),
    [
        (4, b"\x55\x48\x89\xe5", 4, None),
        (4, b"\x55\x48\x89\xe4", 4, "other bytes at vm_fault+0x4, which is patched"),
        (4, b"\x55\x48", 2, "no whole instructions at vm_fault+0x4, which is patched"),
        (6, b"\x89\xe5", 2, "no whole instructions at vm_fault+0x6, which is patched"),
    ],
)
def test_a_manifest_that_lies_of_a_patch_is_found(
    plain: Program, offset: int, original: bytes, size: int, claim: str | None
) -> None:
    claimed = with_patches(plain, (Patch(TEXT + offset, original, b"\x90" * size, "as it says"),))
    assert list(wrong_patches(claimed)) == ([] if claim is None else [claim])


def test_what_is_probed_is_not_patched(plain: Program) -> None:
    sites = np.zeros(1, SITE)
    sites["address"], sites["size"] = TEXT + 5, 3
    assert "vm_fault+0x5 is probed already" in refusal(plain, "vm_fault+4 = hex:9090", sites=sites)
    assert patched(plain, "vm_fault+4 = hex:90", "vm_fault+8 = hex:90", sites=sites).patches


@pytest.mark.parametrize("reason", [Reason.STATIC_KEY, Reason.RETURN_THUNK, Reason.LANDING_PAD, Reason.REPLACEMENT])
def test_what_the_kernel_writes_is_not_patched(plain: Program, reason: Reason) -> None:
    written = replace(plain, patched_at_boot=np.array([[TEXT + 6, 4, reason]], np.uint64))
    why = refusal(written, "vm_fault+4 = hex:9090")
    assert why.endswith(f"vm_fault+0x4 is refused: {reason.text}; vm_fault+0xa comes after it")
    assert patched(written, "vm_fault+4 = hex:90", "vm_fault+10 = hex:90").patches


def test_what_the_kernel_only_looks_up_may_be_patched(plain: Program) -> None:
    """A bug's ud2: checks are there to be skipped."""
    known = replace(plain, patched_at_boot=np.array([[TEXT + 6, 4, Reason.BREAKPOINT]], np.uint64))
    assert patched(known, "vm_fault+4 = hex:9090").patches


def test_bytes_under_a_relocation_are_not_patched(plain: Program) -> None:
    moving = replace(plain, relocated=np.array([[TEXT + 7, 4]], np.uint64))
    assert "vm_fault+0x5 is refused: a relocation is applied to these bytes" in refusal(moving, "vm_fault+5 = hex:90")


def test_a_name_of_several_functions_is_not_chosen(tmp_path: Path) -> None:
    image = small(extra=(Symbol("spin", TEXT + STEP, 2),)).write(tmp_path)
    ambiguous = open_program(open_image(image))
    why = refusal(ambiguous, "spin = hex:90")
    assert f"2 functions are called 'spin': name one by its address, {TEXT + STEP:#x}, {TEXT + 6 * STEP:#x}" in why


def test_functions_stay_those_of_the_original(tmp_path: Path) -> None:
    """Functions of a stripped image are found by following calls: identifiers of probes must not depend on patches."""
    before = program(tmp_path)
    after = patched(before, f"vm_fault = hex:{'90' * 16}")
    assert after.functions is before.functions
