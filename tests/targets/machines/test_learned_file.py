"""Rules that were learned, as text in a board file: added to it and changed in it, and read again."""

from dataclasses import replace
from pathlib import Path

import pytest

from kinst.targets.machines.board_file import read_board
from kinst.targets.machines.learned_file import Assumed, first_text, rule_text, with_rule
from kinst.targets.machines.machine import MachineFacts
from kinst.targets.machines.registers import Reads, Rule
from kinst.targets.machines.registry import BOARDS

BOARD = """\
cpu = "arm64"
[memory.ram]
address = 0x4000_0000
size = "16m"
[registers]
unnamed = "last"
[registers.clock]
address = 0x2000_0000
PLL = { offset = 0x10, reads = { rule = "last", set = 1, after = 3 } }
[registers."odd name"]
address = 0x2000_1000
size = 0x100
R4 = { offset = 8 }
"""
LOCKED = Assumed(0x2000_0010, 4, Rule(bits=0x8000_0000), "image`f+0x4", "0x80000000 set leaves its loop")


def learn(folder: Path, text: str, assumed: Assumed) -> tuple[str, MachineFacts]:
    """The file's text with a rule, and the board that it is then."""
    (folder / "board.toml").write_text(BOARD)
    file = folder / "learned.toml"
    file.write_text(text)
    changed = with_rule(text, read_board(file, BOARDS), assumed)
    assert changed is not None
    file.write_text(changed)
    return changed, read_board(file, BOARDS)


def rule_at(facts: MachineFacts, address: int) -> Rule:
    (found,) = (one for one in facts.ranges if 0 <= address - one.address < one.size)
    return next((one.rule for one in found.registers if one.offset == address - found.address), found.rule)


@pytest.mark.parametrize("address", [0x2000_0010, 0x2000_0000, 0x2000_1004, 0x2000_1008, 0x3000_0000])
@pytest.mark.parametrize(
    "rule",
    [
        Rule(),
        Rule(value=5, bits=1, clear=6, toggle=8, after=2),
        Rule(Reads.CONSTANT, 7),
        Rule(Reads.TOGGLE, 3, bits=1),
        Rule(Reads.TOGGLE),
        Rule(Reads.COUNT, step=0),
        Rule(Reads.COUNT, 1, step=0x100),
        Rule(Reads.LIST, values=(1, 2)),
    ],
)
def test_a_rule_is_added_and_changed(tmp_path: Path, address: int, rule: Rule) -> None:
    assumed = replace(LOCKED, address=address)
    text, facts = learn(tmp_path, first_text("board.toml"), assumed)
    assert rule_at(facts, address) == assumed.rule
    again, facts = learn(tmp_path, text, replace(assumed, rule=rule, who="g"))
    assert rule_at(facts, address) == rule
    assert (again.count("# by "), len(again.splitlines())) == (1, len(text.splitlines()))
    assert facts.unnamed == Rule()


def test_what_the_user_wrote_stays(tmp_path: Path) -> None:
    text = (
        'extends = "board.toml" # mine\n[registers.clock]\nPLL = { offset = 0x10, reads = 4 }\n'
        "OTHER = { offset = 0x20 } # keep\n"
    )
    changed, facts = learn(tmp_path, text, LOCKED)
    assert changed.splitlines() == [
        'extends = "board.toml" # mine',
        "[registers.clock]",
        "# by image`f+0x4: 0x80000000 set leaves its loop",
        'PLL = { offset = 0x10, reads = { rule = "last", set = 0x80000000 } }',
        "OTHER = { offset = 0x20 } # keep",
    ]
    assert rule_at(facts, 0x2000_0010) == LOCKED.rule


def test_names_are_quoted_and_comments_stay_one_line(tmp_path: Path) -> None:
    text, _ = learn(
        tmp_path, first_text("board.toml"), replace(LOCKED, address=0x2000_1004, who="a\n[b]\x1b", why="\n")
    )
    assert '[registers."odd name".R4_]' in text
    assert next(line for line in text.splitlines() if "[b]" in line).startswith("# by a")
    assert first_text('a"\\\n').splitlines()[1] == 'extends = "a\\"\\\\\\u000a"'


def test_a_form_that_is_not_known_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(BOARD)
    file = tmp_path / "learned.toml"
    file.write_text('extends = "board.toml"\nregisters = { clock = { PLL = { offset = 0x10, reads = 1 } } }\n')
    assert with_rule(file.read_text(), read_board(file, BOARDS), LOCKED) is None


def test_texts_are_the_rules() -> None:
    assert rule_text(Rule()) == '"last"'
    assert rule_text(Rule(Reads.FAULT)) == '"fault"'
    assert rule_text(Rule(Reads.COUNT)) == '{ rule = "count", value = 0x0, step = 0x1 }'
