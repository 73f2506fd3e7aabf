"""A misspelled probe is answered before the image is taken apart, with the very words of whoever takes it apart."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.cli import list_probes, rewrite
from kinst.rewriter.naming.resolve import resolve
from kinst.rewriter.rewriting import Source, open_source
from kinst.rewriter.unknown_functions import unknown_functions
from kinst.runtime.cli import run
from kinst.targets.probe import parse_probe_name
from tests.targets import test_kallsyms as naming
from tests.writers.boot_images import kallsyms
from tests.writers.elf import EM_RISCV, EM_X86_64, Part, Symbol, elf64

SAMPLES = Path(__file__).parents[2] / "samples"
KERNELS = ["kernel-amd64.elf", "kernel-arm64.elf", "kernel-riscv64.elf"]
MISSPELLED = ["fbt::vfs_raed:entry", "fbt:::", "kinst::clientrun:", "kinst::nothing_like_it:0x4", "fbt:kernel:mian:"]


def words_of(image: Path, spec: str) -> str:
    """What is wrong with a name, as the whole way says it."""
    opened = open_source(Source(image))
    (outcome,) = resolve(opened.program, [parse_probe_name(spec)], inlines=opened.inlines()).outcomes
    return "" if outcome.error is None else str(outcome.error).removeprefix(f"{outcome.name}: ")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("spec", [spec for spec in MISSPELLED if spec != "fbt:::"])
def test_it_says_what_the_whole_way_says(kernel: str, spec: str) -> None:
    name = parse_probe_name(spec)
    found = unknown_functions(SAMPLES / kernel, None, [name]).unknown
    assert found == {name: words_of(SAMPLES / kernel, spec)}
    assert found[name].startswith("no function")


def test_a_kernel_that_keeps_its_names_for_itself(tmp_path: Path) -> None:
    """They are found once: whoever goes on has them."""
    image = tmp_path / "vmlinux"
    names, split = naming.symbols(1024), naming.AT
    data = naming.kernel(kallsyms(names, naming.TEXT + split, naming.LAYOUTS[0]))
    parts = [
        Part(".text", naming.TEXT, data[:split].replace(bytes(1), b"\x90"), 5),
        Part(".data", naming.TEXT + split, data[split:], 6),
    ]
    image.write_bytes(elf64(EM_X86_64, naming.TEXT, parts))
    wrong = parse_probe_name("fbt::no_such_function:entry")
    seen = unknown_functions(image, None, [wrong])
    assert seen.unknown == {wrong: words_of(image, str(wrong))}
    assert seen.own_names is not None and len(seen.own_names) > 500
    right = parse_probe_name(f"fbt::{names[5][2]}:entry")
    assert not unknown_functions(image, None, [right]).unknown


CERTAIN_OF_NOTHING = [
    "fbt::vfs_read:entry",  # there is one
    "fbt::v2_limits:entry",  # inlined everywhere
    "fbt::vfs_raed*:entry",
    "fbt::sub_80000000:entry",
    "fbt::0x80000000:entry",
    "kinst::vfs_raed:entry",  # copies
    "fbt:zfs:vfs_raed:entry",  # of another module
    "fbt::vfs_raed:nothing",
    "sdt::vfs_raed:entry",
    ":::vfs_raed",
]


@pytest.mark.parametrize("spec", CERTAIN_OF_NOTHING)
def test_it_says_nothing_that_is_not_certain(spec: str) -> None:
    assert not unknown_functions(SAMPLES / KERNELS[2], None, [parse_probe_name(spec)]).unknown


def test_a_patched_image_or_one_without_names_may_have_any(tmp_path: Path) -> None:
    wrong = parse_probe_name("fbt::vfs_raed:entry")
    patched, stripped = tmp_path / "patched.elf", tmp_path / "stripped.elf"
    assert invoke(rewrite, SAMPLES / KERNELS[2], "--probe", "fbt::vfs_read:entry", "-o", patched).exit_code == 0
    stripped.write_bytes(elf64(EM_RISCV, 0x8000_0000, [Part(".text", 0x8000_0000, bytes.fromhex("8280") * 8, 5)]))
    assert not unknown_functions(patched, None, [wrong]).unknown
    assert not unknown_functions(stripped, None, [wrong]).unknown


@pytest.mark.parametrize(
    ("section", "flags", "is_unknown"),
    [(".debug_str", 0, True), (".debug_str", 0x800, False), (".zdebug_str", 0, False)],
)
def test_text_that_is_compressed_may_be_a_name(tmp_path: Path, section: str, flags: int, is_unknown: bool) -> None:  # noqa: FBT001
    base, image = 0x8000_0000, tmp_path / "image.elf"
    parts = [Part(".text", base, bytes.fromhex("8280") * 8, 5), Part(section, base + 0x1000, b"zipped", 4)]
    data = bytearray(elf64(EM_RISCV, base, parts, [Symbol("first", base, 16)]))
    second = int.from_bytes(data[40:48], "little") + 2 * 64  # of the table's headers
    data[second + 8 : second + 16] = (data[second + 8] | flags).to_bytes(8, "little")
    image.write_bytes(data)
    assert bool(unknown_functions(image, None, [parse_probe_name("fbt::second:entry")]).unknown) is is_unknown


def invoke(command: object, *words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])  # type: ignore[arg-type]


SAID = "no function 'vfs_raed' in kernel-riscv64; the nearest are vfs_read, vfs_write, vfs_report"


def test_every_command_says_so(tmp_path: Path) -> None:
    image, spec = SAMPLES / KERNELS[2], "fbt::vfs_raed:entry"
    assert invoke(list_probes, image, spec).stderr == f"list: {spec}: {SAID}\n"
    found = invoke(rewrite, image, "--probe", f"{spec},fbt::vfs_read:entry", "-o", tmp_path / "out")
    assert (found.exit_code, found.stderr, list(tmp_path.iterdir())) == (1, f"rewrite: {spec}: {SAID}\n", [])
    found = invoke(run, image, "-n", f"BEGIN, {spec} {{ trace(1); }}")
    assert (found.exit_code, found.stdout) == (1, "")
    first, *place = found.stderr.splitlines()
    assert first.endswith(f": probe description {spec} does not match any probes: {SAID}")
    assert place == [f"    BEGIN, {spec} {{ trace(1); }}", "           " + "^" * len(spec)]


@pytest.mark.parametrize(
    "words",
    [
        ("-Z", "-n", "fbt::vfs_raed:entry", "-n", "BEGIN { exit(0) }"),
        ("-n", "#pragma D option zdefs\nfbt::vfs_raed:entry { trace(1); } BEGIN { exit(0) }"),
        ("-n", 'BEGIN { printf("fbt::vfs_raed:entry"); exit(0); } /* fbt::vfs_raed:entry */'),
    ],
)
def test_what_only_looks_like_an_error_runs(words: tuple[str, ...]) -> None:
    assert invoke(run, SAMPLES / KERNELS[2], *words).exit_code == 0


def test_a_list_of_probes_goes_on() -> None:
    found = invoke(run, "-l", SAMPLES / KERNELS[2], "-n", "fbt::vfs_raed:entry, fbt::vfs_read:entry")
    assert found.exit_code == 0 and "vfs_read" in found.stdout
    assert SAID in found.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("kinst.rewriter.cli:list_probes", ("fbt::vfs_raed:entry",)),
        ("kinst.runtime.cli:run", ("-n", "fbt::vfs_raed:entry")),
    ],
)
def test_it_takes_neither_lief_nor_an_emulator(command: str, words: tuple[str, ...]) -> None:
    """They are most of a start."""
    module, name = command.split(":")
    code = f"""import sys; from {module} import {name} as main
try: main({[str(SAMPLES / KERNELS[2]), *words]!r})
finally: print(sorted({{'lief', 'unicorn', 'qiling', 'capstone', 'keystone'}} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "[]\n"), done.stderr
