"""Each option of kinst-run with --on: it does what it says, or is refused by one line before QEMU starts."""

import subprocess
from pathlib import Path

import pytest

from kinst.runtime.cli import run
from tests.commands.in_process import command, kinst_run
from tests.runtime.live.qemus import needs
from tests.samples.machines import MACHINES

SAMPLE = MACHINES["riscv64"]
# What is refused, with the words that are said about it.
REFUSED = {
    "call": (("--call", "f()"), "--call: is for our own machine: QEMU boots the image"),
    "method": (("--method", "jump"), "--method: is for our own machine: under QEMU, probes are jumps"),
    "clock": (("--clock", "icount"), "--clock icount: is for our own machine: QEMU's time is the host's"),
    "kaslr_seed": (
        ("--kaslr-seed", "1"),
        "--kaslr-seed: is for our own machine: under QEMU Linux draws its own on arm64",
    ),
    "rng_seed": (("--rng-seed", "1"), "--rng-seed: is for our own machine: for random numbers that follow from"),
    "has_virtio_console": (("--virtio-console",), "--virtio-console: is for our own machine: for one that is written"),
    "users": (("--user", SAMPLE.image), "--user: is for our own machine: frames of the guest's programs"),
    "stages": (("--stage", SAMPLE.image), "--stage: is for our own machine: under QEMU only IMAGE has"),
    "learn": (("--learn", "x.toml"), "--learn: is for our own machine: under QEMU, registers are QEMU's"),
    "gdb": (("--gdb", "1234"), "--gdb: is for our own machine: add -gdb tcp::PORT -S to the command of --on"),
    "start": (("--from", "x.snap"), "--on: is for a boot, and --from continues one"),
    "snapshots": (("--snapshot-at", "END=x.snap"), "--snapshot-at: there are snapshots of our own machine only"),
    "log": (("--log", "exceptions"), "--log: is for our own machine: QEMU itself has"),
    "log_file": (("--log", "exceptions", "--log-file", "x"), "--log: is for our own machine: QEMU itself has"),
    "shell": (("--shell", "END"), "--shell: is for our own machine, and --on has another"),
    "call_each": (("--call-each", "x"), "--call-each x: give the function with --call"),
    "coverage": (("--coverage", "x.json", "-n", "BEGIN"), "--coverage: under --on it is of a run without programs"),
    "coverage_format": (("--coverage-format", "json"), "--coverage-format json: is for --coverage FILE"),
    "report": (("--coverage", "x.json", "--report", "x.html"), "--coverage: with --report it is for our own machine"),
    "pid": (("-p", "1"), "-p: is for our own machine: under QEMU, a predicate of pid or execname chooses processes"),
    "executed": (("--exec", "/bin/true"), "--exec: is for our own machine: under QEMU, a predicate of pid or execname"),
    "read": (("--read", "gdb:localhost:1"), "--read runs nothing: --on is for an image that runs"),
    "every": (("--every", "1s"), "--every: there is nothing to read again: give --read"),
}
# What QEMU is told, as part of its command.
PASSED_ON = {
    "cpus": (("--cpus", "3"), "-smp 3 -m 64M"),
    "memory": ((), "-m 64M"),
    "machine": (("--machine", "virt-riscv64"), "-M virt"),
    "append": (("--append", "a b"), "-append a b"),
    "initrd": (("--initrd", SAMPLE.image), "-initrd /proc/self/fd/"),
    "dtb": (("--dtb", SAMPLE.image), "-dtb /proc/self/fd/"),
    "loads": (("--load", f"{Path(__file__)}@0x81000000"), ",addr=0x81000000,force-raw=on"),
    "disks": (("--disk", "disk.img"), ",format=raw,if=virtio,snapshot=on"),
}
# What QEMU need not know of: a program in D, how a file is read, names, what is printed and where, when a run ends.
OURS = {
    *("words", "program_n", "program_s", "program_f", "program_m", "program_P", "program_i"),
    *("d_x", "d_define", "d_undef", "d_incdir", "d_libdir", "d_bufsize", "d_stdc", "d_destructive", "d_zdefs"),
    *("d_flowindent", "d_cpp", "d_cpphdrs", "d_quiet", "is_64", "is_32", "is_list", "is_check", "is_dump"),
    *(
        "is_verbose",
        "output",
        "form",
        "csv_safe",
        "coverage_of",
        "symbols",
        "debug_file",
        "name",
        "force_code",
        "system",
    ),
    *(
        "raw",
        "entry",
        "payload",
        "modules",
        "on",
        "console",
        "input",
        "prompt",
        "timeout",
        "wall_timeout",
        "until",
        "on_panic",
        "is_top",
    ),
    *("is_version", "help_all", "color", "completion", "board_from", "lossless"),
}


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A QEMU that says how it was started, and does not run."""
    program = tmp_path / "qemu-system-riscv64"
    program.write_text('#!/bin/sh\necho "$@" >&2; exit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "disk.img").write_bytes(bytes(1024))
    monkeypatch.chdir(tmp_path)


def test_what_each_option_means_is_decided() -> None:
    """An option that is added to kinst-run has to be added above, and to `kinst.runtime.live.asked` if QEMU cannot do
    it: none is ignored in silence."""
    decided = [*REFUSED, *PASSED_ON, *OURS]
    assert sorted(decided) == sorted(one.name or "" for one in run.params)


@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_refused(name: str) -> None:
    words, why = REFUSED[name]
    done = kinst_run("--on", "qemu", *words, SAMPLE.image)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kinst-run: {why}")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize("name", PASSED_ON)
def test_what_it_is_told(name: str) -> None:
    words, told = PASSED_ON[name]
    done = kinst_run("--on", "qemu", "--memory", "64M", *words, SAMPLE.image)
    assert done.returncode == 1
    assert told in done.stderr


@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize(("mode", "words"), [(",rw", "if=virtio"), (",ro", "if=virtio,readonly=on")])
def test_what_a_guest_writes_to_a_disk_goes_where_it_is_told_to(mode: str, words: str) -> None:
    done = kinst_run("--on", "qemu -m 64M", "--disk", f"disk.img{mode}", SAMPLE.image)
    assert f",format=raw,{words} -S" in done.stderr


def test_a_module_with_breakpoints_is_refused(tmp_path: Path) -> None:
    needs(SAMPLE.qemu[0], SAMPLE.compiler)
    source, module, patched = (tmp_path / name for name in ("m.c", "m.ko", "patched.ko"))
    source.write_text("int twice(int number) { return number * 2 + 1; }\n")
    subprocess.run([SAMPLE.compiler, "-O1", "-c", source, "-o", module], check=True)
    done = command("rewrite", module, "--probe", "fbt::twice:entry", "-o", patched)
    assert done.returncode == 0, done.stderr
    done = kinst_run("--on", "qemu", "--module", f"m={patched}", "-n", "fbt::kmain:entry", SAMPLE.image)
    assert done.stderr == "kinst-run: --module m: has breakpoints, and under QEMU nothing handles them\n"
