"""What was done is known again, whatever happened to the process that did it."""

from pathlib import Path

import pytest

from kinst.runtime.batch.journal import open_journal, peek
from kinst.runtime.batch.rows import Answer
from kinst.targets.errors import KinstError, UsageError

GOOD = Answer(({"outcome": "done", "sites": 3},), ({"offset": 0, "hits": 1},), 1.5, 20)
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
        pytest.raises(UsageError, match="another kinst-batch is at work"),
        open_journal(tmp_path),
    ):
        pass


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"mine": 1}\n')
    with pytest.raises(KinstError, match="is no journal"), open_journal(tmp_path):
        pass
    assert path.read_text() == '{"mine": 1}\n'
