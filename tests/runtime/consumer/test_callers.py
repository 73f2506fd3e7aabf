"""Who called whom, in weighted stacks; and two files of them compared."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.rewriter.cli import diff
from kinst.runtime.consumer.pictures.flame_difference import difference, read_folded
from kinst.runtime.consumer.pictures.folded_stacks import Frame, FrameKind, Stacks
from kinst.runtime.consumer.report.callers import callers_and_callees
from kinst.targets.errors import ImageError


def stacks(**weights: int) -> Stacks:
    """Named by their frames, outermost first: main_read_copy=3."""
    return {tuple(Frame(one, FrameKind.KERNEL) for one in names.split("_")): n for names, n in weights.items()}


def test_what_was_counted_in_a_function_and_below_it_and_by_whom_it_was_called() -> None:
    found = callers_and_callees(stacks(main_read_copy=3, main_write_copy=2, main_read=1, main=4))
    assert found == [
        ["main", 4, 10, [], [["read", 4], ["write", 2]]],
        ["copy", 5, 5, [["read", 3], ["write", 2]], []],
        ["read", 1, 4, [["main", 4]], [["copy", 3]]],
        ["write", 0, 2, [["main", 2]], [["copy", 2]]],
    ]


def test_a_recursion_counts_a_stack_once() -> None:
    found = callers_and_callees(stacks(main_walk_walk_walk=7))
    assert found == [["main", 0, 7, [], [["walk", 7]]], ["walk", 7, 7, [["main", 7], ["walk", 7]], [["walk", 7]]]]


def test_keys_are_no_functions() -> None:
    assert callers_and_callees({(Frame("swapper", FrameKind.KEY), Frame("idle", FrameKind.KERNEL)): 1}) == [
        ["idle", 1, 1, [], []]
    ]


def folded(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.folded"
    path.write_text(text)
    return path


def test_two_profiles_are_compared_by_their_parts_of_the_whole(tmp_path: Path) -> None:
    """Of the second, ten times as much was counted: that is no difference."""
    before = folded(tmp_path, "before", "main;read 5\nmain;write 4\nmain;old 1\n")
    after = folded(tmp_path, "after", "main;read 80\nmain;write 20\n")
    result = CliRunner().invoke(diff, [str(before), str(after), "-o", str(tmp_path / "d.svg")])
    assert (result.exit_code, result.output) == (0, "")
    picture = (tmp_path / "d.svg").read_text()
    assert "after.folded, compared with before.folded" in picture
    assert "1 call paths are gone" in picture
    kinds = dict(re.findall(r'<g class="f (\w+)"[^>]*>\s*<title>(\w+):', picture))
    assert {name: kind for kind, name in kinds.items()} == {"main": "same", "read": "more", "write": "less"}
    assert "read: 80, 80.00 %, before 50.00 %" in picture


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("main;read five\n", "line 1 is not a folded stack .*: main;read five"),
        ("", "no stacks in it"),
        ("a 0\n", "no stacks"),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = folded(tmp_path, "bad", text)
    with pytest.raises(ImageError, match=why):
        b"".join(difference(path, path))


def test_the_format_is_read_as_it_is_written(tmp_path: Path) -> None:
    assert read_folded(folded(tmp_path, "a", "k`main;k`read it 3\nk`main 1\n")) == {
        (Frame("k`main", FrameKind.KERNEL), Frame("k`read it", FrameKind.KERNEL)): 3,
        (Frame("k`main", FrameKind.KERNEL),): 1,
    }
