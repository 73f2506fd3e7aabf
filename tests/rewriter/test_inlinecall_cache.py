"""kinst-inlinecall answers from what it kept, as long as that holds, and never needs it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rewriter.test_inlinecall import SOURCE, run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def built(folder: Path, *flags: str) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (folder / "call.c").write_text(SOURCE)
    common = ("-O1", "-g", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,-e,start")
    subprocess.run(["gcc", *common, *flags, "-o", "a.elf", "call.c"], check=True, cwd=folder, capture_output=True)
    return folder / "a.elf"


def files(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


def spoil(path: Path) -> None:
    """Damage every unit, unnoticed by who looks at size and time only."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    listing = subprocess.run(["readelf", "-SW", str(path)], capture_output=True, text=True, check=True).stdout
    fields = next(line.split() for line in listing.splitlines() if " .debug_info " in line)
    offset = int(fields[fields.index("PROGBITS") + 2], 16)
    data[offset : offset + 4] = b"\xff" * 4
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_answer_is_kept_until_the_file_changes(tmp_path: Path, home: Path) -> None:
    image = built(tmp_path, "-Wl,--build-id")
    first, as_json = run("inlined", image).stdout, run("inlined", image, "--format", "json").stdout
    assert len(files(home)) == 1 and first.count("\n") == 3

    spoil(image)
    assert run("inlined", image).stdout == first and run("inlined", image, "--format", "json").stdout == as_json
    assert run("inlined", image, "--no-cache").exit_code == 1

    image.touch()
    assert run("inlined", image).exit_code == 1


def test_a_debug_file_that_changes_is_read_again(tmp_path: Path, home: Path) -> None:
    image, bare = built(tmp_path, "-Wl,--build-id"), tmp_path / "bare.elf"
    subprocess.run(["strip", "-o", bare, image], check=True)
    first = run("inlined", bare, "--debug-file", image).stdout

    spoil(image)
    assert run("inlined", bare, "--debug-file", image).stdout == first
    assert run("inlined", bare).exit_code == 1  # it has no debug information of its own
    image.touch()
    assert run("inlined", bare, "--debug-file", image).exit_code == 1


def test_what_was_kept_may_be_damaged(tmp_path: Path, home: Path) -> None:
    image = built(tmp_path, "-Wl,--build-id")
    first = run("inlined", image).stdout
    (kept,) = files(home)

    for text in (b"", b"[]", b"{}", b"null", b"\xff", kept.read_bytes()[:-9]):
        kept.write_bytes(text)
        assert run("inlined", image).stdout == first
    assert files(home) == [kept]


def test_nothing_is_kept_where_that_is_impossible(tmp_path: Path, home: Path) -> None:
    first = run("inlined", built(tmp_path, "-Wl,--build-id=none")).stdout
    assert first and not home.exists()

    home.write_text("a file where the folder should be")
    assert run("inlined", built(tmp_path, "-Wl,--build-id")).exit_code == 0


def test_what_does_not_exist_is_not_kept(tmp_path: Path, home: Path) -> None:
    image = built(tmp_path, "-Wl,--build-id")

    assert run("nothing", image).exit_code == 1 and not home.exists()
    assert run("other", image).stderr == run("other", image).stderr != ""


def test_what_is_kept_is_private(tmp_path: Path, home: Path) -> None:
    image = built(tmp_path, "-Wl,--build-id")
    run("inlined", image)
    (kept,) = files(home)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [folder.stat().st_mode & 0o777 for folder in kept.parents[:3]] == [0o700] * 3


@pytest.mark.parametrize("what", ["file", "folder", "writable"])
def test_a_link_or_a_folder_of_others_is_not_believed(tmp_path: Path, home: Path, what: str) -> None:
    """Whoever can write there could answer for us, or have us write elsewhere."""
    image = built(tmp_path, "-Wl,--build-id")
    first = run("inlined", image)
    (kept,) = files(home)
    forged = json.loads(kept.read_text())
    forged["functions"] = []
    elsewhere = tmp_path / "elsewhere"
    if what == "file":
        elsewhere.write_text(json.dumps(forged))
        kept.unlink()
        kept.symlink_to(elsewhere)
    elif what == "folder":
        kept.write_text(json.dumps(forged))
        kept.parent.rename(elsewhere)
        kept.parent.symlink_to(elsewhere)
    else:
        kept.write_text(json.dumps(forged))
        kept.parent.chmod(0o777)
    again = run("inlined", image)
    assert again.stdout == first.stdout and first.stdout
    if what == "file":
        assert json.loads(elsewhere.read_text()) == forged and not kept.is_symlink()


FORGED = [
    ("functions", [1]),
    ("functions", "abc"),
    ("functions", {"a": 1}),
    ("file", "\x1b[31m"),
    ("line", "12"),
    ("line", True),
    ("line", 1 << 64),
    ("copies", {}),
    ("copies", [None]),
    ("extra", 1),
]


@pytest.mark.parametrize(("what", "value"), FORGED, ids=str)
def test_what_was_kept_has_the_shape_of_an_answer(tmp_path: Path, home: Path, what: str, value: object) -> None:
    """It was a traceback, or acted on the terminal."""
    image = built(tmp_path, "-Wl,--build-id")
    first = run("inlined", image).stdout
    (kept,) = files(home)
    forged = json.loads(kept.read_text())
    (forged if what == "functions" else forged["functions"][0])[what] = value
    kept.write_text(json.dumps(forged))
    again = run("inlined", image)
    assert (again.exit_code, again.stdout) == (0, first)


def test_what_was_kept_may_be_nested_without_end(tmp_path: Path, home: Path) -> None:
    image = built(tmp_path, "-Wl,--build-id")
    first = run("inlined", image).stdout
    (kept,) = files(home)
    kept.write_bytes(b"[" * 100_000)
    assert run("inlined", image).stdout == first


def test_a_file_of_another_user_is_not_read(tmp_path: Path, home: Path) -> None:
    if os.getuid():
        pytest.skip("needs root, to give a file away")
    image = built(tmp_path, "-Wl,--build-id")
    first = run("inlined", image).stdout
    (kept,) = files(home)
    forged = json.loads(kept.read_text())
    forged["functions"] = []
    kept.write_text(json.dumps(forged))
    os.chown(kept, 12345, 12345)
    assert run("inlined", image).stdout == first
