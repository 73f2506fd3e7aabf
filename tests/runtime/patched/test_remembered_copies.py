"""Probes of inlined copies in a stripped image that was patched with a debug file, which is not there any more."""

from pathlib import Path

import pytest

from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest, pack_manifest, unpack_manifest
from tests.commands.in_process import command, kinst_run
from tests.runtime.test_given_names import SAMPLE, stripped

__all__ = ["stripped"]  # a fixture

BOTH = "kinst::v2_limits:entry, kinst::v2_limits:return"
COUNTED = f"{BOTH} {{ @[probefunc, probename, stack(2)] = count(); }}"


@pytest.fixture
def patched(stripped: Path, tmp_path: Path) -> Path:
    path = tmp_path / "p.elf"
    words = ("--debug-file", SAMPLE, "--name", "kernel-amd64", "-p", BOTH.replace(" ", ""), "-p", "kinst::kfree:entry")
    made = command("rewrite", stripped, *words, "-o", path)
    assert made.returncode == 0, made.stderr
    return path


def test_they_fire_as_with_debug_information(patched: Path) -> None:
    whole = kinst_run(SAMPLE, "--console", "/dev/null", "-n", COUNTED)
    alone = kinst_run(patched, "--console", "/dev/null", "-n", COUNTED)
    assert whole.returncode == alone.returncode == 0
    assert alone.stdout == whole.stdout and "kernel-amd64`rpc_read_v2+0x16" in alone.stdout
    assert "kinst::v2_limits:return: 2 copies in 2 functions" in alone.stderr


def test_without_a_program_they_fire_too_and_a_list_names_them(patched: Path) -> None:
    own = kinst_run(patched, "--console", "/dev/null")
    assert "description 'kinst::v2_limits:return' matched 6 probes" in own.stderr
    assert "rpc_write_v2:4 " in own.stdout
    listed = command("list_probes", patched, "kinst:kernel:v2_limits:entry").stdout
    assert "v2_limits at samples/kernel/rpc.c:102" in listed and len(listed.splitlines()) == 3
    assert "kfree entry" in command("list_probes", patched, "kinst::kfree:entry").stdout  # it has code of its own


def test_their_arguments_say_what_they_need(patched: Path) -> None:
    text = "arguments of inlined copies are known only with debug information (--debug-file)"
    typed = kinst_run(patched, "-n", "kinst::v2_limits:entry { trace(args[0]); }")
    assert typed.returncode == 1 and f"args[ ]: {text}" in typed.stderr
    plain = kinst_run(patched, "--console", "/dev/null", "-n", "kinst::v2_limits:entry { trace(arg0); }")
    assert f"in action #1: {text}" in plain.stderr
    whole = kinst_run(
        patched, "--debug-file", SAMPLE, "-e", "-n", "kinst::v2_limits:entry { trace(args[0]->procedure); }"
    )
    assert whole.returncode == 0, whole.stderr


def test_an_addition_keeps_them_and_other_names_still_need_the_file(patched: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.elf"
    assert command("rewrite", patched, "-p", "fbt::kmalloc:", "-o", again).returncode == 0
    manifest = find_manifest(open_image(again))
    assert manifest is not None and {one.function for one in manifest.inlined} == {"v2_limits", "kfree"}
    assert unpack_manifest(pack_manifest(manifest)).inlined == manifest.inlined
    other = kinst_run("-e", again, "-n", "kinst::if_up:entry")
    assert other.returncode == 1 and "does not match any probes: " in other.stderr
