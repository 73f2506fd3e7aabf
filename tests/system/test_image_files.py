"""Real images that are in other files than ELF: they run as their ELF files do, and come back as they were."""

import re
from pathlib import Path

import pytest

from tests.commands.in_process import command, kinst_run
from tests.image_list import FILES
from tests.images import at_hand, real_image
from tests.writers.flat_images import flat_image

pytestmark = pytest.mark.long

# Image -> machine, where it is loaded, and what ends its run.
FLAT = {
    "opensbi-1.6": ("riscv64", 0x8000_0000, "Boot HART MEDELEG.*"),
    "u-boot-riscv64": ("riscv64", 0x8000_0000, "Hit any key"),
    "u-boot-arm64": ("arm64", 0, "Hit any key"),
}
WRITTEN = tuple(name for name in at_hand(*FILES) if name.startswith("fit-"))
READ = tuple(name for name in at_hand(*FILES) if not name.startswith("fit-"))
PAYLOADS = {"fd-amd64": ("DxeCore", "SecMain", "Shell"), "fd-arm64-qemu": ("DxeCore", "PeiCore", "Shell")}


@pytest.mark.parametrize("name", FLAT)
def test_without_headers_firmware_runs_as_with_them(name: str, tmp_path: Path) -> None:
    machine, place, until = FLAT[name]
    data, start, entry = flat_image(real_image(name))
    path, out, back = tmp_path / "fw.bin", tmp_path / "p.bin", tmp_path / "back.bin"
    path.write_bytes(data)
    how = ("--raw", f"{machine}@{place:#x}", "--entry", f"{place + entry - start:#x}")
    run = ("--clock", "icount", "--until", until, "--wall-timeout", "300s")
    plain = kinst_run(real_image(name), *run).stdout
    assert len(plain.splitlines()) > 5
    assert kinst_run(path, *how, *run).stdout == plain
    count = ("-o", tmp_path / "count", "-qn", "fbt:::entry { @ = count(); } END { printa(@); }")
    assert kinst_run(path, *how, *run, *count).stdout.rstrip("\n") == plain.rstrip("\n")
    assert int((tmp_path / "count").read_text()) > 1000
    command("rewrite", path, *how, "--probe", "fbt:::entry", "-o", out)
    assert command("diff", path, out).returncode == 0
    assert kinst_run(out, *run, "-qn", "BEGIN { }").stdout.rstrip("\n") == plain.rstrip("\n")
    command("rewrite", out, "--restore", "-o", back)
    assert back.read_bytes() == data


@pytest.mark.parametrize("name", WRITTEN)
def test_a_boards_fit_image_is_patched_and_comes_back(name: str, tmp_path: Path) -> None:
    path, out, back = real_image(name), tmp_path / "p.itb", tmp_path / "back.itb"
    listed = command("list_probes", path, "--payload", "?").stderr
    payloads = re.findall(r"([\w.-]+) \((?:firmware|standalone)[^)]*\)", listed)
    assert len(payloads) >= 2
    for payload in payloads:
        done = command("rewrite", path, "--payload", payload, "--probe", "fbt:::entry", "-o", out)
        if "no function" in done.stderr or done.returncode:  # parts of Trusted Firmware have no code
            continue
        assert command("diff", path, out).returncode == 0
        command("rewrite", out, "--restore", "-o", back)
        assert back.read_bytes() == path.read_bytes()
        back.unlink()


@pytest.mark.skipif("fit-unmatched" not in WRITTEN, reason="not downloaded: python -m tests.images fit-unmatched")
def test_opensbi_of_a_fit_image_runs() -> None:
    found = kinst_run(
        real_image("fit-unmatched"), "--payload", "opensbi", "--until", "Boot HART MEDELEG", "--timeout", "3s"
    )
    assert "OpenSBI v1." in found.stdout
    assert found.returncode == 0


@pytest.mark.parametrize("name", READ)
def test_what_is_only_read_is_listed(name: str, tmp_path: Path) -> None:
    for payload in PAYLOADS.get(name, ("",)):
        which = ("--payload", payload) if payload else ()
        found = command("list_probes", real_image(name), *which, "fbt:::entry")
        assert found.stdout.count(" entry\n") > 90
        done = command("rewrite", real_image(name), *which, "--probe", "fbt:::entry", "-o", tmp_path / "out")
        assert "is read, and not written" in done.stderr
