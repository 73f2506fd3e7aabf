"""What the README and the pages of docs/ show is what happens: their examples are run (pages.py says how)."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.forking import Forking, forking
from tests.docs.pages import PAGES, ROOT, Example, Page
from tests.image_list import EXACT
from tests.images import at_hand, real_image
from tests.samples.machines import missing

TOOL = re.compile(r"qemu-system-\w+|\w+-linux-gnu-\w+")
PYTHON = ".python"  # runs a program, as `python -c` does
# Nobody else's settings change what is printed.
PLAIN = {"COLUMNS": "80", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"}
WIDEST = 96  # columns of a command


def matches(shown: str, output: str) -> bool:
    """Whether `output` is what is shown, where a line of three dots stands for any lines."""
    pattern = "".join(".*" if line.strip() == "..." else re.escape(line) for line in shown.splitlines(keepends=True))
    return re.fullmatch(pattern, output, re.DOTALL) is not None


def test_output_is_compared_line_by_line() -> None:
    assert matches("one\n...\nthree\n", "one\ntwo\nthree\n")
    assert matches("one\n", "one\n")
    assert not matches("one\n", "one\ntwo\n")
    assert not matches("one\n...\nthree\n", "one\ntwo\n")


def commands() -> dict[str, str]:
    """The console scripts that an installation has: name -> module:function."""
    scripts: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    return scripts


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """What starts the commands."""
    with forking(tmp_path_factory.mktemp("server")) as found:
        yield found


def furnish(folder: Path, page: Page, server: Forking) -> dict[str, str]:
    """Put what a page names into `folder`; return the environment of its examples."""
    (folder / "samples").symlink_to(ROOT / "samples")
    for place, name in page.images.items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).symlink_to(real_image(name))
    scripts = folder / "bin"
    scripts.mkdir()
    for name, entry in commands().items():
        server.client(scripts / name, entry)
    server.client(folder / PYTHON, "")
    paths = {"PATH": f"{scripts}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}"}
    return os.environ | PLAIN | paths


def run(example: Example, folder: Path, environment: dict[str, str]) -> None:
    words = [str(folder / PYTHON), example.code] if example.is_python else ["/bin/sh", "-c", example.code]
    result = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )
    assert matches(example.shown, result.stdout), f"$ {example.code}\n{result.stdout[:4000]}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.long] if page.takes_long else [])
        for page in PAGES
        if page.blocks
    ],
)
def test_examples_print_what_is_shown(page: Page, tmp_path: Path, server: Forking) -> None:
    """A block whose tools are not here is left out, and the test says so when it has run the others."""
    if absent := sorted(set(page.images.values()) - set(at_hand(*page.images.values()))):
        pytest.skip(f"not downloaded: {', '.join(absent)}")
    environment, absent = furnish(tmp_path, page, server), []
    for block in page.blocks:
        tools = {tool for example in block for tool in TOOL.findall(example.code)}
        if why := missing(*sorted(tools)):
            absent.append(why)
            continue
        for example in block:
            run(example, tmp_path, environment)
    if absent:
        pytest.skip("; ".join(absent))


def test_every_command_that_is_shown_with_a_prompt_is_run() -> None:
    """A block without a language, or of another, would show a command's output and nobody would know if it is true."""
    fenced = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    prompts = {
        f"{page.name}: {text.splitlines()[0]}"
        for page in PAGES
        for language, text in fenced.findall(page.text)
        if language != "console" and re.search(r"^\$ kinst-", text, re.MULTILINE)
    }
    assert prompts == set()


def test_the_readme_installs_before_anything_is_run_and_says_what_else_a_recipe_takes() -> None:
    """Whoever types it from the top on a machine that has nothing but Python gets no 'command not found'."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```(?:console|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks[0].startswith("python3 -m venv .venv && . .venv/bin/activate && pip install")
    assert text.index("apt install qemu-system-riscv") < text.index("qemu-system-riscv64 ")
    text = (ROOT / "docs/guide/standalone.md").read_text()
    assert text.index("binutils-riscv64-linux-gnu") < text.index("riscv64-linux-gnu-objcopy")


def test_commands_fit_the_page() -> None:
    """A line of a command that is longer is broken with a backslash: nobody has to scroll to read it."""
    fenced = re.compile(r"^```(console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    long = {
        f"{page.name}: {line}"
        for page in PAGES
        if page.path.parent.name != "reference"  # which shows what --help prints
        for language, text in fenced.findall(page.text)
        for line in text.splitlines()
        if len(line) > WIDEST and (language == "sh" or line.startswith(("$ ", "> ")))
    }
    assert long == set()


def test_every_real_image_comes_by_a_command_that_its_page_shows() -> None:
    """Whoever has a page and a network has its images, in the version that prints what is shown."""
    wanted = {
        (page.name, f"--fetch {EXACT[name]}")
        for page in PAGES
        if page.path.parent.name != "reference"  # whose examples are those of --help
        for name in page.images.values()
    }
    assert len(wanted) > 10
    texts = {page.name: page.text for page in PAGES}
    assert {(page, command) for page, command in wanted if command not in texts[page]} == set()
