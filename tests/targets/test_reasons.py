"""Reasons of refusals: each can come about, and is told in words, of which the first ones can stand alone."""

import re
from pathlib import Path

from kinst.targets.arch.registry import ARCHES
from kinst.targets.instruction import Reason

ROOT = Path(__file__).parents[2]


def test_each_reason_has_words() -> None:
    texts = {reason: reason.text for reason in Reason if reason}
    assert "" not in texts.values()
    assert len(set(texts.values())) == len(texts)
    assert {text for text in texts.values() if text.endswith(".") or not text.split(":")[0]} == set()


def test_each_reason_is_given_somewhere() -> None:
    files = [path for tree in ("targets", "rewriter", "runtime") for path in (ROOT / tree).rglob("*.py")]
    code = "\n".join(path.read_text() for path in files if path.name != "instruction.py")
    assert {
        reason for reason in Reason if not re.search(rf"\bReason\.{reason.name}\b|\"{reason.name}\"", code)
    } == set()


def test_tables_of_kernels_have_reasons_that_there_are() -> None:
    named = {table.reason for facts in ARCHES for table in facts.linux.tables}
    assert named <= set(Reason.__members__)
