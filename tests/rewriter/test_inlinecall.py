"""kinst-inlinecall as a user runs it: the lines of inlinecall(1), JSON, and one line an error."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kinst.rewriter.inlining.inlinecall import inlinecall_lines, inlinecall_values
from kinst.rewriter.inlining.inlinecall_cli import inlinecall
from kinst.targets.debuginfo.dwarf.sections import DebugSections
from kinst.targets.debuginfo.dwarf.units import Units
from kinst.targets.debuginfo.inlined import InlinedCopy, InlineFunction, SourceLine
from kinst.targets.elf.file import open_elf

SOURCE = """volatile int device;
static inline __attribute__((always_inline)) int inlined(int value) { device = value; return device; }
__attribute__((noinline)) void other(void) { device = 3; }
void start(void) { inlined(1); other();
  inlined(2); for (;;); }
"""


def run(*arguments: object) -> Result:
    """One command; a traceback is a failure."""
    result = CliRunner().invoke(inlinecall, [str(one) for one in arguments], prog_name="kinst-inlinecall")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(params=[4, 5])
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of a call has number 1 in DWARF 4 and 0 or 1 in DWARF 5."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (tmp_path / "call.c").write_text(SOURCE)
    flags = ("-O1", f"-gdwarf-{request.param}", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,-e,start")
    subprocess.run(["gcc", *flags, "-o", "a.elf", "call.c"], check=True, cwd=tmp_path, capture_output=True)
    return tmp_path / "a.elf"


def test_lines_are_those_of_inlinecall(image: Path) -> None:
    result = run("inlined", image)
    head, *copies = result.stdout.splitlines()

    assert result.exit_code == 0 and result.stderr == ""
    assert re.fullmatch(r"\S*call\.c:2", head)
    pattern = re.compile(r"\t\[0x[0-9a-f]+ - 0x[0-9a-f]+\]\t\S*call\.c:(\d)\tstart\(\)")
    assert [match[1] for one in copies if (match := pattern.fullmatch(one))] == ["4", "5"] and len(copies) == 2


def test_each_range_has_its_own_caller_and_what_is_unknown_is_left_out() -> None:
    known = InlinedCopy(((0x10, 0x20), (0x90, 0x98)), 0x10, "f", 0x10, SourceLine("a.c", 7))
    unknown = InlinedCopy(((0x40, 0x50),), 0x40, "", 0, SourceLine("", 0))
    function = InlineFunction("g", SourceLine("g.h", 3), (known, unknown), is_out_of_line=False)

    values = inlinecall_values(
        [function], lambda address: {0x10: ("f", 0x10), 0x90: ("f.cold", 0x90)}.get(address, ("", 0))
    )
    lines = inlinecall_lines(values)

    assert list(lines) == [
        "g.h:3",
        "\t[0x10 - 0x20]\ta.c:7\tf()",
        "\t[0x90 - 0x98]\ta.c:7\tf.cold()",
        "\t[0x40 - 0x50]\t\t",
    ]


def test_json(image: Path) -> None:
    (found,) = json.loads(run("inlined", image, "--format", "json").stdout)

    assert (found["name"], found["line"], found["out_of_line"]) == ("inlined", 2, False)
    assert [(one["call_line"], one["caller"]) for one in found["copies"]] == [(4, "start"), (5, "start")]
    assert all(one["entry"] == one["ranges"][0]["low"] for one in found["copies"])


def test_a_function_that_is_not_inline(image: Path) -> None:
    result = run("other", image)

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "kinst-inlinecall: other: is not inlined anywhere: probe fbt::other:\n"
    assert run("other", image, "--format", "json").stdout == "[]\n"


def test_errors_are_one_line(image: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no image")
    subprocess.run(["strip", "-o", tmp_path / "bare.elf", image], check=True)
    expected = {
        ("nothing", image): "nothing: no function of that name in the debug information of ",
        ("inlined", tmp_path / "text"): f"{tmp_path / 'text'}: not an ELF image: ",
        ("inlined", tmp_path / "none"): f"{tmp_path / 'none'}: cannot be read: No such file or directory",
        ("inlined", tmp_path): f"{tmp_path}: is a directory",
        ("inlined", tmp_path / "bare.elf"): f"{tmp_path / 'bare.elf'}: no debug information (.debug_info)",
    }

    for arguments, message in expected.items():
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"kinst-inlinecall: {message}")


def test_what_damaged_units_leave_is_told(image: Path, tmp_path: Path) -> None:
    """With an error for each, as far as one wants to read them."""
    (tmp_path / "more.c").write_text(SOURCE.replace("start", "more").replace("volatile", "extern volatile"))
    flags = ("-O1", "-g", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,-e,start", "-Wl,--build-id")
    sources = ["call.c", *["more.c"] * 12]
    for number, source in enumerate(sources):
        names = [f"-D{name}={name}{number}" for name in ("more", "other")] if number else []
        subprocess.run(["gcc", *flags, *names, "-c", "-o", f"{number}.o", source], check=True, cwd=tmp_path)
    objects = [f"{number}.o" for number in range(len(sources))]
    subprocess.run(["gcc", *flags, "-o", "b.elf", *objects], check=True, cwd=tmp_path, capture_output=True)
    whole, elf = run("inlined", tmp_path / "b.elf"), open_elf(tmp_path / "b.elf")
    assert whole.exit_code == 0 and whole.stdout.count("\n") == 3 * len(sources)

    damaged, start = (
        bytearray(elf.data.tobytes()),
        next(one.offset for one in elf.sections if one.name == ".debug_info"),
    )
    for unit in Units(DebugSections(elf)).all[1:11]:
        damaged[start + unit.offset + 4] = 77  # the version
    (tmp_path / "c.elf").write_bytes(damaged)
    for _ in range(2):  # and is not kept as if it were all
        rest = run("inlined", tmp_path / "c.elf")
        assert rest.exit_code == 1
        assert rest.stdout.splitlines() == [*whole.stdout.splitlines()[:3], *whole.stdout.splitlines()[-6:]]
        assert rest.stderr.count("\n") == 1 and "DWARF version 77 is not known" in rest.stderr

    for unit in Units(DebugSections(elf)).all[1:11]:
        damaged[start + unit.offset + 4] = elf.data[start + unit.offset + 4]
        damaged[start + unit.first] = 0x7F  # the code of its first entry
    (tmp_path / "d.elf").write_bytes(damaged)
    rest = run("inlined", tmp_path / "d.elf", "--format", "json")
    assert rest.exit_code == 1 and len(json.loads(rest.stdout)) == 3
    *lines, last = rest.stderr.splitlines()
    assert len(lines) == 8 and all(": .debug_info: the unit at 0x" in line for line in lines)
    assert last == "kinst-inlinecall: 2 more damaged units"


def test_help_teaches_by_example() -> None:
    result = run("--help")

    assert result.exit_code == 0 and "kinst-inlinecall get_current vmlinux" in result.stdout
    assert run("inlined").exit_code == 2


def test_debug_information_apart(image: Path, tmp_path: Path) -> None:
    before = run("inlined", image).stdout
    bare = tmp_path / "bare.elf"
    subprocess.run(["strip", "-o", bare, image], check=True)

    assert run("inlined", bare, "--debug-file", image).stdout == before
