"""Batch files that nobody would write by hand: one line, and no memory beyond their size."""

import tracemalloc
from pathlib import Path

import pytest

from kinst.runtime.batch.toml_file import read_batch
from kinst.targets.errors import UsageError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a." * 20_000 + "a = 1", "a key of more than 64 parts"),
        ("['x'." + "'y'." * 4_000 + "z]", "a key of more than 64 parts"),
        ("b = {" + "a . " * 20_000 + "a = 1}", "a key of more than 64 parts"),
        ("cpus = " + "9" * 10_000, "Exceeds the limit"),
        ("a = " + "[" * 10_000, "is nested too deeply"),
        ("a = " + "{a=" * 10_000, "is nested too deeply"),
        ("#" * (1 << 20) + "#", "has more than 1 MiB"),
        ("a = 'x", "Illegal character|Expected"),
        ('a = """' + '\\"""' * 5_000, "Unterminated|Expected"),
        ("a = '''" + "''\n" * 50_000, "Unterminated|Expected"),
        ("\udc80", "is not text"),
    ],
    ids=lambda text: text[:20],
)
def test_one_line_says_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=f"b.toml: .*({message})") as failed:
            read_batch(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(failed.value)
    assert most < 64 << 20


def test_dots_in_texts_and_comments_are_no_keys(tmp_path: Path) -> None:
    dots = "." * 1000
    path = tmp_path / "b.toml"
    path.write_text(
        f'a = \'{dots}\' # {dots}\nb = "\\"{dots}"\nc = \'\'\'\n\'\'{dots}\'\'\'\nd = """\n\\""{dots}"""\n# {dots}\n'
    )
    assert read_batch(path) == {"a": dots, "b": f'"{dots}', "c": f"''{dots}", "d": f'""{dots}'}


def test_a_file_without_end_is_not_read_to_it() -> None:
    with pytest.raises(UsageError, match="has more than 1 MiB"):
        read_batch(Path("/dev/zero"))
