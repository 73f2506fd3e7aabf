"""The three commands as a user runs them: output, exit codes, one line an error, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter import cli
from kinst.rewriter.shell.progress import bars
from kinst.targets.image import open_image
from kinst.targets.manifest.packed import find_manifest
from tests.contract import check_contract
from tests.rewriter.programs import TEXT, small
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return small().write(tmp_path)


def run(command: str, *arguments: object) -> Result:
    """One command; a traceback is a failure, and each line on stderr begins with the command's name."""
    function = {"rewrite": cli.rewrite, "list": cli.list_probes, "diff": cli.diff}[command]
    result = CliRunner().invoke(function, [str(one) for one in arguments], prog_name=f"kinst-{command}")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rewrite(*arguments: object) -> Result:
    return run("rewrite", *arguments)


def alone(image: Path) -> bool:
    """Whether nothing else is in the image's folder."""
    return [path.name for path in image.parent.iterdir()] == [image.name]


@pytest.mark.parametrize("command", ["rewrite", "list", "diff"])
def test_help_teaches_by_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0 and f"kinst-{command} " in result.stdout.split("Example")[1]


def test_the_default_output_has_kinst_put_in_its_name(image: Path) -> None:
    result = rewrite(image, "--probe", "fbt:::entry")
    out = image.with_name("small.kinst.elf")
    assert result.exit_code == 0 and out.exists()
    assert result.stdout.startswith(f"{out}: 5 probes at 5 sites of 5 functions; trampolines at 0xffffffffbffe0000")
    assert "kinst-rewrite: fbt:::entry: 2 of 7 refused: 1 no instruction at the function's entry" in result.stderr
    check_contract(image.read_bytes(), out.read_bytes())


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("vmlinux", "vmlinux.kinst"),
        ("fw.elf", "fw.kinst.elf"),
        ("vmlinux-6.1.0-48-cloud", "vmlinux-6.1.0-48-cloud.kinst"),
    ],
)
def test_only_an_ending_in_letters_is_one(name: str, out: str, tmp_path: Path) -> None:
    assert rewrite(small().write(tmp_path, name), "--probe", "kinst::spin:").exit_code == 0
    assert (tmp_path / out).exists()


def test_several_names_and_commas(image: Path) -> None:
    result = rewrite(image, "-p", "kinst::spin:0,kinst::spin:2", "-p", "fbt::spin:entry")
    assert "3 probes at 2 sites of 1 function;" in result.stdout and result.exit_code == 0


def test_restore_gives_the_file_back(image: Path, tmp_path: Path) -> None:
    original = image.read_bytes()
    rewrite(image, "-p", "kinst:::")
    patched = image.with_name("small.kinst.elf")
    refused = rewrite(patched, "--restore")
    assert refused.exit_code == 2 and "exists already: name the output with -o" in refused.stderr
    image.unlink()
    assert rewrite(patched, "--restore").exit_code == 0
    assert image.read_bytes() == original
    assert rewrite(patched, "--restore", "-o", patched).exit_code == 0
    assert patched.read_bytes() == original
    result = rewrite(patched, "--restore", "-o", tmp_path / "x")
    assert result.exit_code == 1 and "is not patched: there is nothing to restore" in result.stderr


def test_a_patched_image_by_its_name_needs_an_output(image: Path) -> None:
    rewrite(image, "-p", "kinst::spin:")
    patched = image.with_name("small.kinst.elf")
    result = rewrite(patched, "-p", "kinst:::")
    assert result.exit_code == 2 and "name the output with -o (the same name changes it)" in result.stderr
    assert rewrite(patched, "-p", "kinst:::", "-o", patched).exit_code == 0
    check_contract(image.read_bytes(), patched.read_bytes())


def test_dry_run_says_everything_and_writes_nothing(image: Path) -> None:
    result = rewrite(image, "-p", "kinst:::", "--dry-run")
    assert result.exit_code == 0 and alone(image)
    assert f"  {TEXT:#x} vm_fault+0: a branch-target landing pad" in result.stdout
    assert "would have" in result.stdout


def test_json_has_every_refusal(image: Path) -> None:
    value = json.loads(rewrite(image, "-p", "kinst:::", "-p", "fbt:::entry", "--format", "json").stdout)
    assert value["sites"] == value["specs"][0]["sites"] and value["machine"] == "amd64"
    assert value["specs"][1]["reasons"] == {"no_prologue": 2}
    assert {one["site"] for one in value["specs"][0]["refusals"]} >= {"vm_fault+0", "start+0", "helper+10"}
    assert value["output"].endswith("small.kinst.elf")
    assert json.loads(rewrite(image, "-p", "kinst:::", "--format", "json", "--dry-run").stdout)["output"] is None


def test_strict_makes_a_refusal_an_error(image: Path) -> None:
    result = rewrite(image, "-p", "kinst::vm_fault:", "--strict")
    assert result.exit_code == 1 and "1 of 8 refused" in result.stderr and alone(image)
    assert rewrite(image, "-p", "kinst::spin:", "--strict").exit_code == 0


def test_every_bad_name_is_told_and_nothing_is_written(image: Path) -> None:
    result = rewrite(image, "-p", "kinst::vm_falt:", "-p", "kinst::spin:0", "-p", "kinst::vm_fault:6")
    lines = result.stderr.splitlines()
    assert result.exit_code == 1 and alone(image)
    assert [line.split(": ")[1] for line in lines] == ["kinst::vm_falt:", "kinst::vm_fault:6"]
    assert all(line.startswith("kinst-rewrite: ") for line in lines)


def test_the_manifest_says_how_instructions_are_carried_out(image: Path, tmp_path: Path) -> None:
    """Until another rewriting says otherwise."""
    first, second, third = (tmp_path / f"{number}.elf" for number in range(3))
    for arguments, method in (
        ((str(image), "-p", "fbt:::entry", "--method", "emulate", "-o", str(first)), "emulate"),
        ((str(first), "-p", "fbt:::return", "-o", str(second)), "emulate"),
        ((str(second), "-p", "fbt:::return", "--method", "auto", "-o", str(third)), "auto"),
    ):
        assert rewrite(*arguments).exit_code == 0
        manifest = find_manifest(open_image(Path(arguments[-1])))
        assert manifest is not None
        assert manifest.method == method


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{image}"], 2, "no --probe: what shall be probed?"),
        (["{image}", "-p", "a:b:c:d:e"], 2, "a:b:c:d:e: 5 fields"),
        (["{image}", "-p", "knist:::"], 2, "did you mean kinst?"),
        (["{image}", "-p", "kinst:::", "--trampoline-base", "here"], 2, "--trampoline-base here: not an address"),
        (["{image}", "-p", "kinst:::", "--trampoline-base", "0xffffffff80100000"], 1, "overlap segment 0"),
        (["{image}", "-p", "kinst:::", "--name", "k=/etc/passwd"], 2, "/etc/passwd is not the image"),
        (["{image}", "-p", "kinst:::", "--symbols", "/no/such"], 1, "/no/such: cannot be read"),
        (["{image}", "-p", "kinst:::", "-o", "/no/such/folder/x"], 1, "/no/such/folder"),
        (["{image}", "-p", "kinst:::", "-o", "/"], 2, "is a folder"),
        (["{image}", "--restore", "-p", "kinst:::"], 2, "--restore takes no --probe"),
        (["{image}", "-p", "kinst:::", "--method", "bogus"], 2, "'bogus' is not"),
        (["/no/such.elf", "-p", "kinst:::"], 1, "/no/such.elf: cannot be read"),
        (["/etc/passwd", "-p", "kinst:::"], 1, "not an ELF image"),
        (["/", "-p", "kinst:::"], 1, "/: "),
    ],
)
def test_each_error_is_one_line_with_its_exit_code(
    arguments: Sequence[str], code: int, message: str, image: Path
) -> None:
    result = rewrite(*(one.replace("{image}", str(image)) for one in arguments))
    assert result.exit_code == code, result.output
    assert message in result.stderr.splitlines()[-1]
    assert not result.stdout and alone(image)


def test_a_module_name_and_a_system_map_name_the_code(image: Path, tmp_path: Path) -> None:
    names = tmp_path / "System.map"
    names.write_text(f"{TEXT + 0x180:x} T pause_for_ever\n")
    result = run("list", image, "kinst:mach:pause_for_ever:", "--name", f"mach={image}", "--symbols", names)
    assert result.stdout.splitlines()[1:] == [
        " 1056      kinst              mach                    pause_for_ever 0",
        " 1058      kinst              mach                    pause_for_ever 2",
    ]


def test_list_has_the_columns_of_dtrace_and_the_ids_of_a_rewriting(image: Path) -> None:
    result = run("list", image)
    lines = result.stdout.splitlines()
    assert lines[0] == "   ID   PROVIDER            MODULE                          FUNCTION NAME"
    assert lines[1] == " 1004        fbt             small                          vm_fault entry"
    rewrite(image, "-p", "fbt:::")
    patched = image.with_name("small.kinst.elf")
    assert run("list", patched, "--name", "small").stdout == result.stdout
    manifest = find_manifest(open_image(patched))
    assert manifest is not None and len(manifest.probes) == len(lines) - 1


def test_list_of_a_patched_image_gives_the_ids_that_an_addition_would_get(image: Path) -> None:
    rewrite(image, "-p", "fbt::spin:entry")
    patched = image.with_name("small.kinst.elf")
    lines = run("list", patched, "::spin:").stdout.splitlines()
    assert [line.split()[0] + " " + line.split()[-1] for line in lines[1:]] == ["1016 entry", "1054 0", "1056 2"]


def test_list_as_json_and_disassembly(image: Path) -> None:
    rows = json.loads(run("list", image, "kinst::vm_fault:", "--format", "json").stdout)
    names = {"id": 1022, "provider": "kinst", "module": "small", "function": "vm_fault", "name": "4"}
    assert rows[0] == {**names, "evidence": "symbol"}
    assert run("list", image, "kinst::vm_fault:", "--verbose").stdout.splitlines()[1].endswith(" by symbol")
    text = run("list", image, "kinst::vm_fault:", "--disassemble").stdout.splitlines()
    assert text[0] == f"vm_fault: {TEXT:#x}, 16 bytes"
    assert "f30f1efa" in text[1] and "endbr64" in text[1] and "refused: a branch-target landing pad" in text[1]
    assert text[2].split()[:4] == ["4", f"{TEXT + 4:#x}", "55", "pushq"] and text[2].split()[5] == "trampoline"
    assert "emulated (jcc" in text[4].lower() or "emulated" in text[4]
    value = json.loads(run("list", image, "kinst::vm_fault:", "--disassemble", "--format", "json").stdout)
    assert [row["offset"] for row in value[0]["instructions"]] == [0, 4, 5, 8, 10, 12, 13, 14]
    assert value[0]["instructions"][0]["reason"] == "landing_pad"
    assert value[0]["evidence"] == "symbol"


def test_list_says_how_sites_can_be_jumps(image: Path) -> None:
    result = run("list", image, "kinst::vm_fault:", "--jumps")
    assert result.stdout.splitlines()[1].endswith(" jump together")
    assert "7 of 7 sites can be jumps (100.0 %): 4 inside, 1 together, 1 relay, 1 padding\n" in result.stderr
    jumps = [
        row["jumps"][0]
        for row in json.loads(run("list", image, "kinst::vm_fault:", "--jumps", "--format", "json").stdout)
    ]
    methods = ["together", "inside", "inside", "relay", "inside", "inside", "padding"]
    assert [jump["method"] for jump in jumps] == methods
    assert jumps[3]["relay"] == TEXT + 21  # behind the tail call, whose own jump takes five bytes of the padding
    assert jumps[3]["dead"] == ["rax", "cf", "pf", "af", "zf", "sf", "of"]
    lines = run("list", image, "kinst::vm_fault:", "--disassemble", "--jumps").stdout.splitlines()
    assert "; jump trap: a breakpoint: it cannot be probed; dead: " in lines[1]
    rows = json.loads(run("list", image, "kinst::vm_fault:", "--disassemble", "--jumps", "--format", "json").stdout)[0][
        "instructions"
    ]
    assert rows[0]["jump"]["method"] == "trap"
    assert {"address": rows[1]["address"], **rows[1]["jump"]} == jumps[0]


def test_disassembly_shows_functions_of_which_nothing_can_be_probed(image: Path) -> None:
    result = run("list", image, "vm_fault_quick:", "--disassemble")
    assert result.exit_code == 0 and "sti" in result.stdout
    assert run("list", image, "nope:", "--disassemble").exit_code == 1


def test_list_stops_quietly_when_its_reader_does() -> None:
    path = ROOT / "samples" / "kernel-riscv64.elf"
    code = "from kinst.rewriter.cli import list_probes; list_probes(prog_name='kinst-list')"
    environment = os.environ | {"PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}"}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), "kinst:::"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().split()[0] == b"ID"
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(timeout=60) == 0, errors
    assert errors == b"" or (b"refused" in errors and b"Traceback" not in errors)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, {1, 130, -2}), (signal.SIGTERM, {143})])
def test_an_interrupt_leaves_nothing(number: signal.Signals, code: set[int], tmp_path: Path) -> None:
    """The command is stopped in the middle of writing, through a hook in the stage that copies."""
    image = small().write(tmp_path)
    program = (
        "import time\n"
        "from contextlib import contextmanager\n"
        "import kinst.rewriter.cli as cli\n"
        "@contextmanager\n"
        "def stage(name, total):\n"
        "    if name == 'writing':\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "    yield lambda amount: None\n"
        "cli.bars = lambda stream: stage\n"
        "cli.rewrite(prog_name='kinst-rewrite')\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}"}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(image), "-p", "kinst:::"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"writing\n"
        opened = (one.readlink() for one in Path(f"/proc/{process.pid}/fd").iterdir())
        assert any(one.is_relative_to(tmp_path) and one.name != image.name for one in opened), "the file in the making"
        process.send_signal(number)
        assert process.wait(timeout=30) in code
        assert b"Traceback" not in process.stderr.read()
    assert [path.name for path in tmp_path.iterdir()] == ["small.elf"]


def test_diff_as_text_and_json_with_its_exit_codes(image: Path, tmp_path: Path) -> None:
    rewrite(image, "-p", "kinst:::")
    patched = image.with_name("small.kinst.elf")
    result = run("diff", image, patched)
    assert result.exit_code == 0 and result.stdout.splitlines()[-1] == "every difference is explained"
    value = json.loads(run("diff", image, patched, "--format", "json", "--verbose").stdout)
    assert value["explained"] and value["sites"][0]["site"] == "vm_fault+4"
    data = bytearray(patched.read_bytes())
    data[-1] ^= 1
    (tmp_path / "wrong.elf").write_bytes(data)
    result = run("diff", image, tmp_path / "wrong.elf")
    assert result.exit_code == 1 and "UNEXPLAINED" in result.stdout
    assert run("diff", image, "/no/such").exit_code == 1
    assert run("diff", image).exit_code == 2


class _Terminal:
    def __init__(self, *, is_terminal: bool) -> None:
        self.text = ""
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_bars_are_drawn_on_a_terminal_when_work_is_slow_and_erased_after_it() -> None:
    now = 0.0
    stream = _Terminal(is_terminal=True)
    progress = bars(stream, clock=lambda: now)  # type: ignore[arg-type]
    with progress("decoding", 200) as done:
        done(50)
        assert stream.text == "", "quick work shows nothing"
        now = 2.0
        done(50)
        assert "decoding" in stream.text and "50%" in stream.text
        assert stream.text.endswith("0.0 MB/s  2 s left\x1b[K"), "100 bytes in 2 s"
    assert stream.text.endswith("\r\x1b[K")


def test_no_bar_is_drawn_where_stderr_is_no_terminal() -> None:
    stream = _Terminal(is_terminal=False)
    with bars(stream, clock=time.monotonic)("writing", 10) as done:  # type: ignore[arg-type]
        done(10)
    assert stream.text == ""


def far_image(folder: Path) -> Path:
    """A function in reach of the trampolines, and one that is not, with a RIP-relative operand."""
    top, below = 0xFFFF_FFFF_8000_0000, 0x4000_0000_0000
    far = b"\x48\x8b\x05\x00\x10\x00\x00\x90\xc3"  # mov 0x1000(%rip), %rax; nop; ret
    parts = [
        Part(".far", below, far, 5, load_address=0x1000_0000),
        Part(".text", top, b"\x90" * 40 + b"\xc3", 5, load_address=0x2000_0000),
    ]
    path = folder / "far.elf"
    path.write_bytes(elf64(EM_X86_64, 0, parts, [Symbol("far", below, len(far)), Symbol("main", top, 41)]))
    return path


def test_sites_out_of_reach_are_told(tmp_path: Path) -> None:
    path = far_image(tmp_path)
    result = rewrite(path, "-p", "kinst:::", "--dry-run")
    assert "kinst-rewrite: trampolines: 1 of 44 refused: 1 its operand is out of reach" in result.stderr
    assert (
        json.loads(rewrite(path, "-p", "kinst:::", "--format", "json", "--dry-run").stdout)["lost"][0]["reason"]
        == "out_of_reach"
    )
    assert rewrite(path, "-p", "kinst:::", "--strict").exit_code == 1
    base = ("--trampoline-base", "0xffffffff90000000")
    result = rewrite(path, "-p", "kinst::far:0", *base)
    assert result.exit_code == 1 and "0xffffffff90000000 is out of reach of 1 sites" in result.stderr
    assert alone(path)
