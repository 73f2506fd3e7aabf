"""What was done is known again, whatever happened to the process that did it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kinst.runtime.batch.journal import open_journal, peek
from kinst.runtime.batch.rows import Answer
from kinst.runtime.batch.schema import checked_answer
from kinst.targets.errors import KinstError, UsageError

COVERED = {
    "image": "i", "function": "f", "offset": 0, "instruction": "nop",
    "hits": 1, "inputs": 1, "first": 0, "refused": None,
}  # fmt: skip
GOOD = Answer(({"outcome": "done", "sites": 3},), (COVERED,), 1.5, 20)
BAD = Answer(({"outcome": "done"}, {"outcome": "crashed", "reason": "why"}))
DIGESTS = ("a" * 32, "b" * 32)


def fill(folder: Path) -> None:
    with open_journal(folder) as journal:
        for digest, answer in zip(DIGESTS, (GOOD, BAD), strict=True):
            journal.add(digest, answer)


def test_answers_are_read_again(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_journal(tmp_path) as journal:
        assert [journal.answer(digest) for digest in DIGESTS] == [GOOD, BAD]
        assert [journal.is_good(digest) for digest in (*DIGESTS, "c" * 32)] == [True, False, False]
        assert "c" * 32 not in journal
    assert peek(tmp_path) == set(DIGESTS)


@pytest.mark.parametrize("lost", [1, 20, 60])
def test_a_line_that_was_cut_is_dropped_and_what_follows_is_whole(tmp_path: Path, lost: int) -> None:
    fill(tmp_path)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-lost])
    with open_journal(tmp_path) as journal:
        assert (DIGESTS[0] in journal, DIGESTS[1] in journal) == (True, False)
        journal.add(DIGESTS[1], GOOD)
    with open_journal(tmp_path) as journal:
        assert [journal.answer(digest) for digest in DIGESTS] == [GOOD, GOOD]


def test_the_last_answer_counts(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_journal(tmp_path) as journal:
        journal.add(DIGESTS[1], GOOD)
    with open_journal(tmp_path) as journal:
        assert journal.is_good(DIGESTS[1])
        assert journal.answer(DIGESTS[1]) == GOOD


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        open_journal(tmp_path),
        pytest.raises(UsageError, match="another kinst-batch uses it"),
        open_journal(tmp_path),
    ):
        pass


ENTRY: dict[str, Any] = {
    "task": DIGESTS[0],
    "rows": [{"outcome": "done"}],
    "coverage": [COVERED],
    "seconds": 1.5,
    "megabytes": 20,
}
WRONG_ROWS: list[Any] = [
    7, [], {}, {"outcome": "<script>alert(1)</script>"}, {"outcome": ["done"]}, {"outcome": {}}, {"reason": "x"},
    {"outcome": "done", "reason": 7}, {"outcome": "done", "sites": "7"}, {"outcome": "done", "sites": 1 << 64},
    {"outcome": "done", "sites": True}, {"outcome": "done", "seconds": 1e999}, {"outcome": "done", "task<b>": "x"},
    {"outcome": "done", "console": [[]]},
]  # fmt: skip
WRONG_COVERAGE: list[dict[str, Any]] = [
    {"offset": "<script>alert(1)</script>"}, {"offset": None}, {"inputs": None}, {"first": None}, {"hits": "7"},
    {"function": None}, {"instruction": 7}, {"more": 1},
]  # fmt: skip
WRONG_SECONDS: list[Any] = ["1", None, [], -1, 1e999, float("nan"), 10**400]
WRONG_MEGABYTES: list[Any] = ["1", None, 1.5, -1, 1 << 63]
FORGED: list[Any] = [
    7, [], None, "x", {}, {**ENTRY, "more": 1}, {key: ENTRY[key] for key in ENTRY if key != "rows"},
    {**ENTRY, "task": 7}, {**ENTRY, "task": "../" * 8}, {**ENTRY, "task": {}}, {**ENTRY, "rows": 1},
    *({**ENTRY, "rows": [row]} for row in WRONG_ROWS),
    *({**ENTRY, "coverage": [COVERED | other]} for other in WRONG_COVERAGE),
    {**ENTRY, "coverage": [{}]}, {**ENTRY, "coverage": {}},
    *({**ENTRY, "seconds": one} for one in WRONG_SECONDS),
    *({**ENTRY, "megabytes": one} for one in WRONG_MEGABYTES),
]  # fmt: skip


@pytest.mark.parametrize("entry", FORGED, ids=range(len(FORGED)))
def test_what_nobody_of_us_has_written_is_refused(entry: Any, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    with (
        pytest.raises(KinstError, match=r"is not a journal of kinst-batch, or is damaged at byte 0$"),
        open_journal(tmp_path),
    ):
        pass
    with pytest.raises(ValueError, match="no answer"):
        checked_answer(entry)


def test_a_report_that_is_none_is_refused() -> None:
    assert checked_answer(replace(GOOD, report=b"page")) == replace(GOOD, report=b"page")
    with pytest.raises(ValueError, match="report: 'page'"):
        checked_answer(replace(GOOD, report=cast(Any, "page")))


def test_depth_and_digits_are_no_tracebacks(tmp_path: Path) -> None:
    for text in ("[" * 100_000, "9" * 10_000, '{"task":' * 5000):
        (tmp_path / "journal.jsonl").write_text(text + "\n")
        with pytest.raises(KinstError, match=r"damaged at byte 0$"), open_journal(tmp_path):
            pass


def test_text_that_no_file_can_have_is_escaped(tmp_path: Path) -> None:
    row = {"outcome": "done", "reason": "a\udc80b"}
    (tmp_path / "journal.jsonl").write_text(json.dumps({**ENTRY, "rows": [row]}) + "\n")
    with open_journal(tmp_path) as journal:
        assert journal.answer(DIGESTS[0]).rows[0]["reason"] == "a\\udc80b"


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"mine": 1}\n')
    with pytest.raises(KinstError, match="is not a journal"), open_journal(tmp_path):
        pass
    assert path.read_text() == '{"mine": 1}\n'
