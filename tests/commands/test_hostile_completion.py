"""Names of an image that are commands to a shell: what is offered of them is one word, and nothing of it is run."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kinst.rewriter.commandline.completion import answer
from kinst.rewriter.commandline.quoting import offered, words_of
from tests.commands.all_commands import COMMANDS
from tests.commands.launchers import environment_with_commands
from tests.commands.test_completion import BREAKS, needs
from tests.writers.elf import EM_X86_64, Part, Symbol, elf64

# What each begins with is one function's alone.
NAMES = [
    "aa$(touch${IFS}trap)",
    "ab`touch${IFS}trap`",
    "ac;touch${IFS}trap;",
    "ad&touch${IFS}trap&",
    "ae>trap",
    "af|touch${IFS}trap",
    "ag'$(touch${IFS}trap)'",
    'ah"$(touch${IFS}trap)"',
    "ai touch trap",
    "aj\\$(touch${IFS}trap)",
    "ak<(touch${IFS}trap)",
    "al!!",
    "am{1,2}*?[a-z]~#",
    "an$'\\n'touch",
]
SHELLS = {
    "bash": ("--norc", 'eval "$(kinst-list --completion bash)"'),
    "zsh": ("-f", 'autoload -U compinit; compinit -u; eval "$(kinst-list --completion zsh)"'),
    "fish": ("-N", "kinst-list --completion fish | source"),
}
COMPLETED = [
    ("bash", "", "aa"), ("bash", "", "ah"), ("bash", "'", "ag"), ("bash", '"', "ah"),
    ("zsh", "", "aa"), ("zsh", "", "ac"), ("zsh", '"', "aa"),
    ("fish", "", "aa"), ("fish", "", "ac"), ("fish", '"', "aa"),
]  # fmt: skip
_PATIENCE = 30.0  # seconds


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an image that has these functions."""
    symbols = [Symbol(name, 0x1000 + row, 1) for row, name in enumerate(NAMES)]
    text = Part(".text", 0x1000, b"\xc3" * len(NAMES), 5)
    (tmp_path / "names.elf").write_bytes(elf64(EM_X86_64, 0, [text], symbols))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offers(line: str, shell: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What may stand at the end of a line."""
    monkeypatch.setenv("KINST_LINE", line)
    monkeypatch.setenv("KINST_BREAKS", BREAKS)
    return answer(COMMANDS["kinst-run"], "kinst-run", shell).splitlines()[1:]


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_bash_reads_one_word_in_what_is_offered(quote: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {name: offers(f"kinst-run names.elf --call {quote}{name[:2]}", "bash", monkeypatch) for name in NAMES}
    lost = [name for name, found in words.items() if not found]
    assert lost == (["al!!"] if quote == '"' else []), "bash has no spelling for ! in double quotes"
    ended = [quote + found[0] + ("" if found[0].endswith(quote) else quote) for found in words.values() if found]
    lines = "".join(f"printf '%s\\n' {one}\n" for one in ended)  # as readline ends a quote
    done = subprocess.run([needs("bash"), "--norc"], input=lines, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [name for name in NAMES if name not in lost]
    assert sorted(one.name for one in folder.iterdir()) == ["names.elf"]


@pytest.mark.parametrize("word", ["zz\x1b[2J", "zz\x07", "zz\u202e", "zz\u00a0", "zz\udc80", "zz\ttab", "zz\n"])
@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_not_seen_is_not_offered(word: str, shell: str) -> None:
    assert [offered(word, shell, quote) for quote in ("", "'", '"')] == [None] * 3


@pytest.mark.parametrize(
    ("line", "last", "begun", "quote"),
    [
        (r"a b::c\(d", "b::c(d", "b::", ""),
        (r'a "b::c\$(d', "b::c$(d", "", '"'),
        (r'a "b::c\d', r"b::c\d", "", '"'),
        ("a --p='b:c d", "--p=b:c d", "--p=", "'"),
        ("a --p='b:c 'd", "--p=b:c d", "--p=", ""),
        (r"a 'b'\''c", "b'c", "b'", "'"),
        ("a ", "", "", ""),
        ("a ''", "", "", ""),
    ],
)
def test_where_the_word_at_the_cursor_begins(line: str, last: str, begun: str, quote: str) -> None:
    found = words_of(line, BREAKS)
    assert (found.whole, found.last, found.quote) == (("a",), last, quote)
    assert found.begun == begun


class Window:
    """A shell in a window of tmux: what is typed there, and what is shown."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket)]

    def press(self, *keys: str) -> None:
        """Press keys as tmux names them."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def type(self, text: str) -> None:
        """Type letters as they are."""
        self.press("-l", text)

    def expect(self, is_it: Callable[[str], bool]) -> str:
        """Wait until what is shown is this, and return it."""
        end = time.monotonic() + _PATIENCE
        while True:
            shown = subprocess.run([*self._tmux, "capture-pane", "-pJ"], capture_output=True, text=True, check=True)
            if is_it(shown.stdout):
                return shown.stdout
            assert time.monotonic() < end, shown.stdout
            time.sleep(0.05)


@contextmanager
def window(folder: Path, command: str, environment: Mapping[str, str]) -> Iterator[Window]:
    """A window in which a shell runs, as long as the block does."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    socket = folder / "socket"
    start = ["tmux", "-S", str(socket), "-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "45", command]
    subprocess.run(start, check=True, cwd=folder, env={**environment, "TERM": "xterm", "HOME": str(folder)})
    try:
        yield Window(socket)
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=True)


def with_line(text: str) -> Callable[[str], bool]:
    """Whether what is shown has this line."""
    return lambda shown: f"\n{text}\n" in shown


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_and_enter_run_nothing(shell: str, folder: Path) -> None:
    arguments, setting_up = SHELLS[shell]
    path, environment = needs(shell), environment_with_commands(folder)
    before = r"printf '%s\n' "  # shows what the command would get
    with window(folder, f"{path} {arguments}", environment) as screen:
        screen.type(f"{setting_up}; echo re''ady")
        screen.press("Enter")
        screen.expect(lambda shown: "\nready" in shown)
        for _, quote, begun in (one for one in COMPLETED if one[0] == shell):
            (wanted,) = (name for name in NAMES if name.startswith(begun))
            screen.type(f"kinst-run names.elf --call {quote}{begun}")
            screen.press("Tab")
            screen.expect(lambda shown: "touch" in shown.rpartition("--call")[2])
            screen.press("C-a")
            screen.type(before)
            screen.press("Enter")
            screen.expect(with_line(wanted))
    assert not (folder / "trap").exists()
