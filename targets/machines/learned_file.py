"""What was assumed of registers that nobody models -> tables of a board file, which its user reads, edits and keeps.

A file is changed as text: what the user wrote in it stays.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from kinst.targets.machines.machine import MachineFacts
from kinst.targets.machines.registers import Reads, Rule
from kinst.targets.machines.toml_table import TomlText
from kinst.targets.values import dataclass
from kinst.targets.visible import visible

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_READS: Final = re.compile(r"\s*reads\s*=")
_COMMENT: Final = "# by "
_WORD: Final = 4
_WIDEST: Final = 300  # characters of a comment


@dataclass(frozen=True, slots=True)
class Assumed:
    """A register's rule. `who` asked for it, `why` it is so."""

    address: int  # physical
    size: int
    rule: Rule
    who: str
    why: str

    @property
    def comment(self) -> str:
        """The line above the rule."""
        return f"{_COMMENT}{visible(f'{self.who}: {self.why}')}"[:_WIDEST]


def first_text(extends: str) -> str:
    """The text of a file in which nothing was learned yet."""
    return (
        "# Registers that nobody models, and what a guest was told of them: kinst-run --learn has assumed it.\n"
        f'extends = "{_escaped(extends)}"\n'
    )


def with_rule(text: str, facts: MachineFacts, assumed: Assumed) -> str | None:
    """The text of a board file with a rule; None: the file has the register in a form that is not changed here.

    Args:
        text: of the file.
        facts: the board, with what the file extends.
        assumed: the rule.
    """
    keys, place = _place(facts, assumed)
    known = _value(tomllib.loads(text), keys)
    if known is None:
        changed = f"{text.rstrip()}\n\n[{'.'.join(map(_quoted, keys))}]\n{place}{_rule_lines(assumed)}\n"
    elif isinstance(known, dict):
        lines = text.splitlines()
        depth, number, _ = TomlText("", text).place((*keys, "reads"))
        changed = "\n".join(_changed(lines, number - 1, keys, known, assumed) if depth >= len(keys) else lines) + "\n"
    else:
        return None
    return changed if _is_right(text, changed, keys, assumed) else None


def _is_right(before: str, after: str, keys: tuple[str, ...], assumed: Assumed) -> bool:
    """Whether a file has the rule, and nothing else is changed: lines are found by their form, which may be that of
    something else, a text of several lines."""
    try:
        values = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        return False
    table = _value(values, keys)
    rule = tomllib.loads(f"reads = {rule_text(assumed.rule)}")["reads"]
    if not isinstance(table, dict) or table.get("reads") != rule:
        return False
    old = tomllib.loads(before)
    known = _value(old, keys)
    for one in (table, known):
        if isinstance(one, dict):
            one.pop("reads", None)
    return table == known and values == old if isinstance(known, dict) else True


def _changed(lines: list[str], at: int, keys: tuple[str, ...], known: Mapping[str, Any], assumed: Assumed) -> list[str]:
    """The lines, of which one has the register's rule, or its table; as they are if it has neither."""
    comment, rule = _rule_lines(assumed).split("\n")
    if _READS.match(lines[at]):
        before = at - 1 if at and lines[at - 1].startswith(_COMMENT) else at
        return [*lines[:before], comment, rule, *lines[at + 1 :]]
    if lines[at].lstrip().startswith("["):
        return [*lines[: at + 1], comment, rule, *lines[at + 1 :]]
    if not re.match(rf"\s*{re.escape(_quoted(keys[-1]))}\s*=\s*{{", lines[at]):
        return lines
    numbers = {key: value for key, value in known.items() if key != "reads" and isinstance(value, int)}
    rest = "".join(f"{_quoted(key)} = {value:#x}, " for key, value in numbers.items())
    return [*lines[:at], comment, f"{_quoted(keys[-1])} = {{ {rest}{rule} }}", *lines[at + 1 :]]


def _rule_lines(assumed: Assumed) -> str:
    return f"{assumed.comment}\nreads = {rule_text(assumed.rule)}"


def _place(facts: MachineFacts, assumed: Assumed) -> tuple[tuple[str, ...], str]:
    """The keys of the register's table, and the lines in it that say where it is."""
    address = assumed.address
    found = next((one for one in facts.ranges if 0 <= address - one.address < one.size), None)
    size = "" if assumed.size == _WORD else f"size = {assumed.size}\n"
    if found is None:
        return ("registers", f"at-{address:x}"), f"address = {address:#x}\nsize = {assumed.size}\n"
    offset = address - found.address
    if not offset and assumed.size == found.size:
        return ("registers", found.name), f"address = {address:#x}\n{size}"
    names = {one.name for one in found.registers}
    name = next((one.name for one in found.registers if one.offset == offset), "") or _free(f"R{offset:X}", names)
    return ("registers", found.name, name), f"offset = {offset:#x}\n{size}"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _value(values: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def rule_text(rule: Rule) -> str:
    """A rule as a board file has it."""
    match rule.kind:
        case Reads.CONSTANT:
            return f"{rule.value:#x}"
        case Reads.LIST:
            return f"[{', '.join(map(hex, rule.values))}]"
        case Reads.FAULT:
            return '"fault"'
        case Reads.LAST:
            parts = {"value": rule.value, "set": rule.bits, "clear": rule.clear, "toggle": rule.toggle}
            keys = {key: value for key, value in (parts | {"after": rule.after}).items() if value}
            return _table("last", keys) if keys else '"last"'
        case Reads.TOGGLE:
            return _table("toggle", {"value": rule.value, "bits": rule.bits})
        case Reads.COUNT:
            return _table("count", {"value": rule.value, "step": rule.step})
        case _:
            assert_never(rule.kind)


def _table(kind: str, parts: Mapping[str, int]) -> str:
    return f'{{ rule = "{kind}"{"".join(f", {key} = {value:#x}" for key, value in parts.items())} }}'


def _quoted(key: str) -> str:
    return key if _BARE.fullmatch(key) else f'"{_escaped(key)}"'


def _escaped(text: str) -> str:
    return "".join(f"\\{one}" if one in '"\\' else f"\\u{ord(one):04x}" if ord(one) < 32 else one for one in text)
