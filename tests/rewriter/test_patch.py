"""`--patch` as a user types it: written, told, explained and undone; with probes before and behind it."""

import json
from pathlib import Path

import pytest

from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from tests.contract import check_contract
from tests.rewriter.programs import TEXT, small
from tests.rewriter.test_cli import alone, rewrite, run

STUB = "vm_fault+4 = xor eax, eax; ret"
LINE = f"{TEXT + 4:#x} vm_fault+0x4: 55 48 89 e5 pushq %rbp; movq %rsp, %rbp -> 31 c0 c3 90 xorl %eax, %eax; retq; nop"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return small().write(tmp_path)


def restored(patched: Path) -> bytes:
    out = patched.with_name("restored.elf")
    assert rewrite(patched, "--restore", "-o", out).exit_code == 0
    return out.read_bytes()


def explained(image: Path, patched: Path) -> str:
    found = run("diff", image, patched)
    assert found.exit_code == 0, found.stdout
    return found.stdout


def test_a_patch_alone_needs_no_segment(image: Path) -> None:
    result = rewrite(image, "--patch", STUB)
    out = image.with_name("small.kinst.elf")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{out}: 1 patch, 4 bytes\n", "")
    check_contract(image.read_bytes(), out.read_bytes())
    report = explained(image, out)
    assert f"  {LINE}\n" in report and "patches          1 patch, 4 bytes" in report
    assert f"asked for        --patch '{STUB}'" in report and "trampolines" not in report
    assert restored(out) == image.read_bytes()


@pytest.mark.parametrize("symbols", [(), ("--trampoline-symbols",)])
def test_probes_on_a_patch_are_of_its_instructions(image: Path, symbols: tuple[str, ...]) -> None:
    out = image.with_name("p.elf")
    result = rewrite(image, "--patch", STUB, "-p", "kinst::vm_fault:", *symbols, "-o", out)
    assert "1 patch, 4 bytes; 8 probes at 8 sites of 1 function" in result.stdout
    sites = check_contract(image.read_bytes(), out.read_bytes())
    assert [site.original.hex() for site in sites][:3] == ["31c0", "c3", "90"]
    assert "vm_fault+6: c3 retq -> cc int3" in explained(image, out)
    assert restored(out) == image.read_bytes()


def test_steps_in_any_order_that_keeps_probes_come_to_the_same(image: Path) -> None:
    steps = image.with_name("steps.elf")
    at_once = image.with_name("once.elf")
    probes = ("-p", "kinst::vm_fault:", "-p", "fbt::spin:entry")
    assert rewrite(image, "--patch", STUB, "-o", steps).exit_code == 0
    assert rewrite(steps, "-p", "fbt::spin:entry", "-o", steps).exit_code == 0
    assert rewrite(steps, "--patch", "helper.cold = ret", "-o", steps).exit_code == 0
    assert rewrite(steps, *probes, "-o", steps).exit_code == 0
    assert rewrite(image, "--patch", "helper.cold = ret", "--patch", STUB, *probes, "-o", at_once).exit_code == 0
    first, second = (find_manifest(open_image(path)) for path in (steps, at_once))
    assert first is not None and second is not None
    assert [one.address for one in first.patches] == [one.address for one in second.patches]
    for column in ("address", "trampoline", "original", "verdict"):
        assert first.sites[column].tolist() == second.sites[column].tolist(), column
    check_contract(image.read_bytes(), steps.read_bytes())
    explained(image, steps)
    assert restored(steps) == image.read_bytes()


def test_identifiers_do_not_depend_on_patches(image: Path) -> None:
    out = image.with_name("p.elf")
    rewrite(image, "--patch", f"vm_fault = hex:{'90' * 16}", "-o", out)
    assert run("list", out, "fbt:::entry").stdout == run("list", image, "fbt:::entry").stdout
    assert run("list", out).stdout.count("fbt") > 4  # an image with patches alone has no probes of its own to list


def test_what_is_probed_is_not_patched_behind_its_back(image: Path) -> None:
    out = image.with_name("p.elf")
    rewrite(image, "-p", "kinst::vm_fault:5", "-o", out)
    before = out.read_bytes()
    result = rewrite(out, "--patch", STUB, "-o", out)
    assert result.exit_code == 1 and "vm_fault+0x5 is probed already: patch the image first" in result.stderr
    assert out.read_bytes() == before


def test_a_dry_run_and_json_show_before_and_after(image: Path) -> None:
    result = rewrite(image, "--patch", STUB, "-p", "kinst::vm_fault:4", "--dry-run")
    assert result.stdout.splitlines()[0] == LINE and "would have 1 patch, 4 bytes; 1 probe" in result.stdout
    assert alone(image)
    value = json.loads(rewrite(image, "--patch", STUB, "--strict", "--format", "json").stdout)
    assert value["patches"] == [
        {
            "address": TEXT + 4,
            "site": "vm_fault+0x4",
            "before": "55 48 89 e5",
            "instructions": "pushq %rbp; movq %rsp, %rbp",
            "after": "31 c0 c3 90",
            "patched": "xorl %eax, %eax; retq; nop",
            "text": STUB,
        }
    ]
    out = image.with_name("small.kinst.elf")
    found = json.loads(run("diff", image, out, "--format", "json", "-v").stdout)
    assert found["explained"] and found["patches"] == value["patches"] and found["sites"] == []


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (("--patch", "vm_fault+1 = ret"), 1, "offset 1 is inside the instruction at 0"),
        (("--patch", "vm_fault = ret", "--patch", "vm_fault = ret"), 1, "vm_fault is patched already"),
        (("--patch", "vm_fault = mov al, 300"), 1, "which is without 0x12c"),
        (("--patch", "vm_fault = bogus"), 2, "keystone does not know this instruction"),
        (("--patch", "vm_fault"), 2, "is not WHERE = ASSEMBLY"),
        (("--patch", "vm_fault = ret", "--restore"), 2, "--restore takes no --probe and no --patch"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(image: Path, options: tuple[str, ...], code: int, why: str) -> None:
    result = rewrite(image, *options)
    assert result.exit_code == code and why in result.stderr and len(result.stderr.splitlines()) == 1
    assert alone(image)


@pytest.mark.parametrize("changed", [0, 3, None])
def test_a_patch_that_is_not_what_its_manifest_says_is_found(image: Path, changed: int | None) -> None:
    """A byte of the patch, and one beside it."""
    out = image.with_name("p.elf")
    rewrite(image, "--patch", STUB, "-o", out)
    data = bytearray(out.read_bytes())
    offset = open_image(out).offset_of(TEXT + 4)
    assert offset is not None
    data[offset + (4 if changed is None else changed)] ^= 1
    out.write_bytes(data)
    found = run("diff", image, out)
    assert found.exit_code == 1 and "UNEXPLAINED" in found.stdout
    result = rewrite(out, "--restore", "-o", image.with_name("o.elf"))
    assert (result.exit_code == 0) == (changed is not None)  # what the patch covers comes from the manifest
