"""Words that a shell may complete: what the commands answer, and what bash, zsh and fish make of it."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kinst.rewriter.commandline.completion import answer, script
from kinst.rewriter.commandline.shells import SHELLS
from tests.commands.all_commands import COMMANDS, run
from tests.commands.launchers import environment_with_commands
from tests.rewriter.programs import small
from tests.runtime.terminal_session import TerminalSession
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

BREAKS = " \t\n\"'><=;|&(:"  # bash's COMP_WORDBREAKS
FBT = ["fbt::spin:entry", "fbt::spin:return"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an image."""
    small().write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(line: str, shell: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of an answer."""
    name = line.split()[0]
    monkeypatch.setenv("KINST_LINE", line)
    monkeypatch.setenv("KINST_BREAKS", BREAKS)
    return answer(COMMANDS[name], name, shell).splitlines()


ANSWERS = [
    ("kinst-list ", ["file"]),
    ("kinst-list small.elf k", ["open", "kinst::"]),
    ("kinst-list small.elf kinst:", ["open", "kinst::"]),
    ("kinst-list small.elf kinst::vm", ["open", "kinst::vm_fault:", "kinst::vm_fault_quick:"]),
    ("kinst-list small.elf kinst::sp", ["plain", "kinst::spin:", "kinst::spin:entry", "kinst::spin:return"]),
    ("kinst-list small.elf kinst:small:sp", ["plain", *(f"kinst:small:spin:{one}" for one in ("", "entry", "return"))]),
    ("kinst-list small.elf fbt::spin:r", ["plain", "fbt::spin:return"]),
    ("kinst-list small.elf fbt::nothing", ["plain"]),
    ("kinst-list nothing.elf fbt::sp", ["plain"]),
    ("kinst-rewrite small.elf --probe fbt::sp", ["plain", *FBT]),
    ("kinst-rewrite small.elf --probe=fbt::sp", ["plain", *(f"--probe={one}" for one in FBT)]),
    ("kinst-rewrite small.elf -p kinst:::,fbt::sp", ["plain", *(f"kinst:::,{one}" for one in FBT)]),
    ("kinst-rewrite small.elf --format j", ["plain", "json"]),
    ("kinst-run small.elf -n 'fbt::sp", ["plain", *FBT]),
    ("kinst-run small.elf -n 'BEGIN { x = 1 } fbt::sp", ["plain", *(f"BEGIN {{ x = 1 }} {one}" for one in FBT)]),
    ("kinst-run small.elf -n 'BEGIN { fbt::sp", ["plain"]),
    ("kinst-run small.elf -n dtrace::", ["open", "dtrace:::"]),
    ("kinst-run small.elf -f spi", ["plain", "spin"]),
    ("kinst-run small.elf --call spi", ["plain", "spin"]),
    ("kinst-run -x aggs", ["open", "aggsize=", "aggsortkey=", "aggsortkeypos=", "aggsortpos=", "aggsortrev="]),
    ("kinst-run -x zd", ["plain", "zdefs"]),
    ("kinst-run --machine virt-r", ["plain", "virt-riscv64"]),
    ("kinst-run -P fb", ["plain", "fbt"]),
    ("kinst-run -s ", ["file"]),
    ("kinst-run --clock ", ["plain", "host", "icount"]),
]


@pytest.mark.parametrize(("line", "expected"), ANSWERS, ids=[line for line, _ in ANSWERS])
def test_what_may_follow(line: str, expected: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(line, "zsh", monkeypatch) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kinst-list small.elf kinst::vm", ["open", "vm_fault:", "vm_fault_quick:"]),
        ("kinst-list small.elf fbt::spin:", ["plain", "entry", "return"]),
        ("kinst-rewrite small.elf --probe=fbt::sp", ["plain", "spin:entry", "spin:return"]),
        ("kinst-run small.elf -n 'fbt::sp", ["plain", *FBT]),
        ('kinst-run small.elf -n "fbt::sp', ["plain", *FBT]),
        ("kinst-run small.elf -n fbt::sp", ["plain", "spin:entry", "spin:return"]),
    ],
)
def test_bash_replaces_what_is_behind_a_colon_but_for_quotes(
    line: str, expected: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(line, "bash", monkeypatch) == expected


def test_what_is_behind_the_cursor_does_not_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "kinst-list small.elf fbt::spin:ex"
    monkeypatch.setenv("KINST_POINT", str(len(line) - 1))
    assert asked(line, "bash", monkeypatch) == ["plain", "entry"]


def test_options_are_told_with_what_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *lines = asked("kinst-run --ti", "fish", monkeypatch)
    assert first == "described"
    assert lines == ["--timeout\tEnd after so much of the machine's time"]
    assert asked("kinst-list --js", "zsh", monkeypatch) == ["plain"], "an old spelling"


def test_many_functions_are_offered_by_what_they_begin_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{group}_{number:03}" for group in ("net", "vfs", "vm") for number in range(200)] + ["main"]
    symbols = [Symbol(name, 0x1000 + row, 1) for row, name in enumerate(names)]
    text = Part(".text", 0x1000, b"\xc3" * len(names), 5)
    Path("many.elf").write_bytes(elf64(EM_X86_64, 0, [text], symbols))
    assert asked("kinst-list many.elf fbt::", "zsh", monkeypatch) == [
        "open", "fbt::main:", "fbt::net_", "fbt::vfs_", "fbt::vm_",
    ]  # fmt: skip
    assert asked("kinst-list many.elf fbt::n", "zsh", monkeypatch)[1] == "fbt::net_000:"


def test_names_of_a_stripped_image_come_from_files_or_are_searched_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = 0xFFFF_FFFF_8010_0000
    parts = [Part(".text", base, b"\x90" * 40 + b"\xc3", 5, load_address=0x10_0000)]
    Path("bare.elf").write_bytes(elf64(EM_X86_64, base, parts, []))
    Path("System.map").write_text(f"{base:x} T idle_for_ever\n")
    assert asked("kinst-list bare.elf fbt::sub_", "zsh", monkeypatch)[1] == f"fbt::sub_{base:x}:entry"
    line = "kinst-list bare.elf --symbols System.map fbt::idle"
    assert asked(line, "zsh", monkeypatch)[1:] == ["fbt::idle_for_ever:entry", "fbt::idle_for_ever:return"]
    named = ["bare.elf", "--symbols", "System.map", "-p", "kinst::idle_for_ever:0", "-o", "patched.elf"]
    assert run("kinst-rewrite", *named).exit_code == 0
    assert asked("kinst-list patched.elf fbt::idle", "zsh", monkeypatch)[1:] == [
        "fbt::idle_for_ever:entry", "fbt::idle_for_ever:return",
    ]  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_for_all_commands(shell: str) -> None:
    printed = run("kinst-list", "--completion", shell).stdout
    assert printed == script(shell)
    assert set(COMMANDS) <= set(re.findall(r"kinst-[a-z]+", printed.split("_kinst_complete", 1)[1]))


def needs(shell: str) -> str:
    """The path of a shell."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


TYPED = [  # what is typed, and what the command then gets
    (r"kinst-list small.elf kinst::vm_fault_q\t ", "kinst-list small.elf kinst::vm_fault_quick:"),
    (r"kinst-list small.elf fbt::sp\ten\t ", "kinst-list small.elf fbt::spin:entry"),
    (r"kinst-run small.elf -n 'fbt::sp\tre\t ", "kinst-run small.elf -n fbt::spin:return"),
    (r"kinst-run --mach\tvirt-r\t ", "kinst-run --machine virt-riscv64"),
    (r"kinst-list sma\t ", "kinst-list small.elf"),
]


def check_typing(session: TerminalSession, setting_up: bytes) -> None:
    """Type at a shell; what the command would get is printed by echo, which is put before it."""
    session.press(setting_up + b'; echo re""ady\n')
    session.expect(rb"ready")
    for typed, wanted in TYPED:
        session.press(typed.encode().decode("unicode_escape").encode() + b"\x01echo = \n")
        session.expect(rb"\n= " + re.escape(wanted.encode()))


def test_bash(folder: Path) -> None:
    environment = environment_with_commands(folder)
    with TerminalSession("--norc", "-i", command=[needs("bash")], environment=environment) as session:
        check_typing(session, b'bind "set enable-bracketed-paste off"; eval "$(kinst-list --completion bash)"')


def test_zsh(folder: Path) -> None:
    environment = environment_with_commands(folder)
    with TerminalSession("-f", "-i", command=[needs("zsh")], environment=environment) as session:
        check_typing(session, b'autoload -U compinit; compinit -u; eval "$(kinst-list --completion zsh)"')


def test_fish(folder: Path) -> None:
    environment = environment_with_commands(folder) | {"HOME": str(folder)}
    lines = ["kinst-list small.elf kinst::vm", "kinst-run small.elf -n 'fbt::sp", "kinst-run --machine virt-r"]
    asking = "\n".join(f"complete -C {shlex.quote(line)}" for line in lines)
    result = subprocess.run(
        [needs("fish"), "-N", "-c", f"kinst-list --completion fish | source\n{asking}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["kinst::vm_fault:", "kinst::vm_fault_quick:", *FBT, "virt-riscv64"]
