"""What was refused of a description is told by every command alike, on stderr, unless the user wants none of it."""

from pathlib import Path

import pytest

from tests.commands.in_process import command, kinst_run
from tests.images import at_hand, real_image

SAMPLE = Path(__file__).parent.parent.parent / "samples" / "kernel-amd64.elf"
ALL = "fbt:::return: 4 of 173 refused: 2 opens an interrupt shadow that must cover the next instruction, 2 16- or "
ONE_TICK = ("--timeout", "10ms", "--clock", "icount")


def told(stderr: str) -> list[str]:
    """The lines about refusals, without the command's name."""
    return [line.partition(": ")[2] for line in stderr.splitlines() if " refused: " in line]


def test_all_commands_say_the_same(tmp_path: Path) -> None:
    rewritten = command("rewrite", SAMPLE, "-p", "fbt:::return", "-o", tmp_path / "p.elf")
    runs = [
        rewritten,
        command("list_probes", SAMPLE, "fbt:::return"),
        kinst_run("-l", SAMPLE, "-n", "fbt:::return"),
        kinst_run(SAMPLE, "-n", "fbt:::return {}", *ONE_TICK),
        kinst_run("-e", SAMPLE, "-n", "fbt:::return {}"),
    ]
    assert [told(run.stderr) for run in runs] == [told(rewritten.stderr)] * len(runs)
    assert told(rewritten.stderr) == [f"{ALL}32-bit code, or beside a change of mode"]
    assert not any("refused" in run.stdout for run in runs)


def test_each_description_has_its_line() -> None:
    result = kinst_run("-e", SAMPLE, "-n", "fbt:::return {}", "-n", "fbt::work_*:, fbt:::entry {}")
    assert [line.split(" refused")[0] for line in told(result.stderr)] == [
        "fbt:::return: 4 of 173",
        "fbt:::entry: 3 of 97",
    ]


def test_who_wants_none_of_it_gets_none() -> None:
    for mode in ("-e", "-l"):
        result = kinst_run(mode, "-q", SAMPLE, "-n", "fbt:::return {}")
        assert (result.returncode, told(result.stderr)) == (0, [])
    assert told(kinst_run("-e", SAMPLE, "-n", "#pragma D option quiet\nfbt:::return {}").stderr) == []
    for name, words in (("rewrite", ("--dry-run", "-p")), ("list_probes", ())):
        assert command(name, SAMPLE, "-q", *words, "fbt:::return").stderr == ""


def test_who_permits_what_matches_nothing_is_told_of_refusals() -> None:
    for mode in ("-e", "-l"):
        assert len(told(kinst_run(mode, "-Z", SAMPLE, "-n", "fbt:::return {}").stderr)) == 1


def test_what_is_too_far_from_the_trampolines_says_so() -> None:
    programs = ("-n", "kinst::start64: {}", "-n", "fbt::trap_common:entry, fbt::vfs_lookup:entry {}")
    result = kinst_run("-e", SAMPLE, *programs)
    assert result.returncode == 1
    assert "fbt::vfs_lookup:entry does not match any probes: its operand is out of reach of the tramp" in result.stderr
    assert "trampolines: 1 of 9 refused" in kinst_run("-e", "-Z", SAMPLE, *programs).stderr


def test_a_description_that_is_refused_as_a_whole_says_why_in_the_list() -> None:
    result = kinst_run("-l", SAMPLE, "-n", "fbt::kmain:return")
    assert "failed to match fbt::kmain:return: No probe matches description: kmain has no return" in result.stderr


def test_many_refusals_are_one_line() -> None:
    if not at_hand("linux-amd64"):
        pytest.skip("no Linux in the cache")
    image = real_image("linux-amd64")
    result = kinst_run("-l", image, "-n", "kinst::native_*:")
    lines = told(result.stderr)
    assert len(lines) == 1 and lines[0].startswith("kinst::native_*:: ")
    assert told(command("list_probes", image, "kinst::native_*:").stderr) == lines
