"""--shell: a pipe's lines run where the probe fires; at a terminal there are prompts, and Tab completes names."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime import open_image
from kinst.runtime.cli import run
from kinst.runtime.tracing.python.completion import candidates
from kinst.targets.arch.registry import NAMES
from tests.runtime.terminal_session import TerminalSession
from tests.runtime.test_cli import ENVIRONMENT

WALK = "fbt::vfs_walk:entry"


def shell(lines: str, *arguments: str) -> tuple[str, str, int]:
    """What is printed for lines of a pipe."""
    result = CliRunner().invoke(run, ["-q", "--clock", "icount", "--console", os.devnull, *arguments], input=lines)
    return result.stdout, result.stderr, result.exit_code


@pytest.mark.parametrize("machine", NAMES)
def test_a_pipes_lines_run_at_the_first_hit_and_the_run_goes_on(machine: str) -> None:
    lines = 'hit.args[0].v_name.string()\nfor one in range(2):\n    print("n", one)\n\ntrace["ncpu"]\ntrace["nope"]\n'
    count = ("-n", f'{WALK} {{ @ = count(); }} {WALK} /!seen++/ {{ printf("first\\n"); }}')
    text, errors, status = shell(lines, f"samples/kernel-{machine}.elf", *count, "--shell", "fbt::vfs_walk:entry")
    shown = [line.strip() for line in text.splitlines() if line.strip()]
    # What a clause of the same probe has recorded comes before.
    assert shown[:-1] == ["first", "''", "n 0", "n 1", "(unsigned int) 1"]
    assert int(shown[-1]) > 20
    assert errors == "NoNameError: nope: no function, variable or constant of the image; nearest nodes\n"
    assert status == 0


def test_exit_ends_the_run_and_a_probe_may_be_its_end() -> None:
    image = "samples/kernel-arm64.elf"
    text, _, status = shell("exit()\n", image, "-n", f"{WALK} {{ @ = count(); }}", "--shell", WALK)
    assert (text.split(), status) == (["1"], 0)
    text, _, status = shell('trace["nodes"][3].v_name.string()\n', image, "--shell", "END")
    assert (text, status) == ("'hosts'\n", 0)


def test_it_is_for_our_own_machine() -> None:
    _, errors, status = shell("", "samples/kernel-arm64.elf", "--on", "qemu", "--shell", WALK)
    assert (errors, status) == ("kinst-run: --shell: is for our own machine, and --on has another\n", 2)
    _, errors, status = shell("", "samples/kernel-arm64.elf", "--read", "core", "--shell", WALK)
    assert (errors, status) == ("kinst-run: --read runs nothing: --shell is for an image that runs\n", 2)


@pytest.mark.long
@pytest.mark.parametrize("has_ipython", [True, False])
def test_a_terminal_has_a_prompt(has_ipython: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    environment = {**ENVIRONMENT, "IPY_TEST_SIMPLE_PROMPT": "1", "TERM": "dumb", "IPYTHONDIR": str(tmp_path)}
    if not has_ipython:
        (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['IPython'] = None\n")
        environment["PYTHONPATH"] = str(tmp_path)
    words = ("-q", "samples/kernel-arm64.elf", "--console", os.devnull, "--shell", WALK)
    with TerminalSession(*words, environment=environment) as session:
        session.expect(rb"Ctrl-D goes on")
        session.press(b'print(trace["ncpu"] + 41)\n')
        session.expect(rb"[\n ]42\r?\n")
        session.press(b"while True: pass\n\n")
        session.expect(rb"pass")
        session.press(b"\x03")
        session.expect(rb"KeyboardInterrupt")
        session.press(b'trace["nope"]\n')
        session.expect(rb"NoNameError: nope: ")
        session.press(b"\x04")
        assert session.ended() == 0


def test_what_may_follow_a_line() -> None:
    with open_image("samples/kernel-arm64.elf") as image:
        names = {"trace": image.objects, "hit": None, "nodes": image["nodes"]}
        assert candidates('print(trace["ncp', names) == ["ncpu"]
        assert candidates('trace["nodes"][3].v_na', names) == ["v_name"]
        assert candidates("nodes[0].v_attr.va_s", names) == ["va_size"]
        assert "address_" in candidates('trace["ncpu"].', names)
        assert candidates("tra", names) == ["trace"]
        assert candidates("nothing.at", names) == candidates("f().x", names) == []
