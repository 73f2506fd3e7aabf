"""The examples that --help shows work as they are printed, on images of these names."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter import cli
from kinst.rewriter.commandline.command import Command
from kinst.rewriter.inlining.inlinecall_cli import inlinecall
from tests.gated import draws
from tests.images import at_hand, real_image

COMMANDS: dict[str, Command] = {
    "kinst-rewrite": cli.rewrite,
    "kinst-list": cli.list_probes,
    "kinst-diff": cli.diff,
    "kinst-inlinecall": inlinecall,
}
IMAGES = {
    "fw_jump.elf": "opensbi-1.6",
    "u-boot.elf": "u-boot-riscv64",
    "vmlinux": "linux-amd64",
}
MADE = "kinst-rewrite fw_jump.elf --probe fbt:::entry -o p.elf"  # what other examples begin with


def examples(name: str) -> list[str]:
    """The command lines of a command's help."""
    return [example.line for example in COMMANDS[name].examples]


def words_of(example: str) -> set[str]:
    return set(shlex.split(example))


def run(example: str) -> None:
    name, *arguments = shlex.split(example)
    result = CliRunner().invoke(COMMANDS[name], arguments, prog_name=name)
    assert result.exit_code == 0, f"{example}: {result.output[-2000:]}"
    assert result.stdout or Path(arguments[arguments.index("-o") + 1]).exists(), example
    Path("vmlinux.kinst").unlink(missing_ok=True)  # half a gigabyte


@pytest.mark.parametrize("most", draws(1, 100))  # of vmlinux
@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_work(name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = [file for file, image in IMAGES.items() if at_hand(image)]
    for file in known:
        Path(file).symlink_to(real_image(IMAGES[file]))
    shown = examples(name)
    assert len(shown) >= 1
    done = [example for example in shown if words_of(example) & {*known, "p.elf"} and "vmlinux.stripped" not in example]
    if any("p.elf" in words_of(example) for example in done):
        run(MADE)
    large = [example for example in done if "vmlinux" in words_of(example)]
    for example in done:
        if example not in large[most:]:
            run(example)
    assert done[:1] == shown[:1] or name == "kinst-inlinecall"  # whose images are all large
