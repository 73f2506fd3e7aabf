"""kinst-batch: what it writes, when tasks fail or the process is killed, too; and that nothing is done twice."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kinst.runtime.batch.cli import batch
from kinst.runtime.batch.rows import COLUMNS
from kinst.runtime.coverage.json_format import read_coverage

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "samples"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / ".typing"), str(ROOT)])}


def invoked(*words: str | Path) -> Result:
    return CliRunner().invoke(batch, [str(word) for word in words], prog_name="kinst-batch")


def rows(folder: Path) -> list[dict[str, Any]]:
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def digests(folder: Path) -> list[str]:
    return [json.loads(line)["task"] for line in (folder / "journal.jsonl").read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "samples").symlink_to(SAMPLES)
    (tmp_path / "torn.elf").write_bytes((SAMPLES / "kernel-arm64.elf").read_bytes()[:3000])
    (tmp_path / "inputs").write_text("".join(f'{number}, "abc", {number % 4}\n' for number in range(12)))
    return tmp_path


ALL = """
[[rewrite]]
images = ["samples/kernel-amd64.elf", "torn.elf"]
probes = ["fbt:::", "kinst::nosuch:"]

[[run]]
images = "samples/kernel-arm64.elf"
programs = ["fbt:::entry { @calls[probefunc] = count(); } fbt::hash_bytes:entry { printf(\\"hashed\\"); exit(3); }"]

[[call]]
images = "samples/kernel-riscv64.elf"
function = "hash_bytes"
inputs = "inputs"
arguments = ["?"]
chunk = 7
"""


def test_all_kinds_of_tasks_are_rows_of_one_table(folder: Path) -> None:
    (folder / "all.toml").write_text(ALL)
    out = folder / "out"
    first = invoked(folder / "all.toml", "-o", out, "--table", "csv", "-j", "1")
    assert first.stderr == ""
    assert first.stdout.splitlines()[:4] == [
        "7 tasks done",
        "call     12 done, 1 refused",
        "rewrite  3 refused, 1 done",
        "run      1 done",
    ]
    found = rows(out)
    assert list(found[0]) == list(COLUMNS)
    assert [(row["image"], row["what"], row["outcome"]) for row in found[:5]] == [
        ("samples/kernel-amd64.elf", "fbt:::", "done"),
        ("samples/kernel-amd64.elf", "kinst::nosuch:", "refused"),
        ("torn.elf", "fbt:::", "refused"),
        ("torn.elf", "kinst::nosuch:", "refused"),
        ("samples/kernel-arm64.elf", found[4]["what"], "done"),
    ]
    assert found[0]["proved"].startswith("explained, restored")
    assert int(found[0]["sites"]) > 200
    assert "no function 'nosuch'" in found[1]["reason"]
    assert "truncated" in found[2]["reason"]
    assert str(folder) not in found[2]["reason"]
    ran = found[4]
    assert (ran["machine"], ran["end"], ran["exit_status"], ran["printed"]) == ("arm64", "exit", "3", "hashed")
    calls = {keys[0]: count for keys, count in json.loads(ran["aggregations"])["calls"]}
    assert calls["hash_bytes"] == 1
    assert found[5]["input"] == "?" and "neither a number nor a text" in found[5]["reason"]
    assert [row["covered"] for row in found[6:]] == [found[6]["covered"], *[found[7]["covered"]] * 3] * 3
    assert found[6]["path"] != found[7]["path"] == found[8]["path"]
    with (out / "coverage.csv").open(newline="") as file:
        covered = list(csv.DictReader(file))
    assert covered[0]["inputs"] == covered[0]["hits"] == "12"
    assert Counter(row["inputs"] for row in covered)["9"] >= 5
    assert (out / "index.html").read_text().endswith("</html>\n")

    again = invoked(folder / "all.toml", "-o", out, "--table", "csv")
    assert again.stdout.splitlines()[0] == "7 tasks done, 7 of them before"
    assert rows(out) == found
    assert len(digests(out)) == 7


BOOTS = """
[[run]]
images = "samples/kernel-arm64.elf"
programs = ["BEGIN { n = 1; }", "BEGIN { n = 2; }"]
timeout = "1ms"
coverage = true
"""


def test_what_boots_ran_is_added_up(folder: Path) -> None:
    """Two runs of an image."""
    (folder / "boots.toml").write_text(BOOTS)
    done = invoked(folder / "boots.toml", "-o", folder / "out", "--table", "csv", "-j", "1", "--format", "json")
    assert (done.stderr, done.exit_code) == ("", 0)
    found = rows(folder / "out")
    runs = [read_coverage(folder / "out" / row["code"]) for row in found]
    every = read_coverage(folder / "out" / "coverage" / "all.json")
    assert (every.runs, len(every.images)) == (2, 1)
    assert not every.calls and all(one.calls for one in runs)
    expected: dict[tuple[str, str], int] = {}
    for run in runs:
        for image in run.images:
            for one in image.ran:
                key = image.digest, one.name
                expected[key] = expected.get(key, 0) + one.runs
    assert {(image.digest, one.name): one.runs for image in every.images for one in image.ran} == expected
    assert {image.path for image in every.images} == {str(folder / row["image"]) for row in found}
    told = json.loads(done.stdout)["code"]
    assert (told["runs"], told["ran"]) == (2, len(expected))
    page = (folder / "out" / "coverage" / "all.html").read_text()
    assert page.count("<th scope=row>kmain</th>") == 1
    assert 'href="coverage/all.html"' in (folder / "out" / "index.html").read_text()


def started(folder: Path, out: Path) -> "subprocess.Popen[bytes]":
    code = "from kinst.runtime.batch.cli import batch; batch(prog_name='kinst-batch')"
    words = [sys.executable, "-c", code, str(folder / "many.toml"), "-o", str(out), "--table", "csv", "-j", "1"]
    return subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def stopped(process: "subprocess.Popen[bytes]", journal: Path, end: signal.Signals) -> tuple[int, str]:
    """Sends a signal when another task is done; the exit code, and what was said."""
    before = journal.stat().st_size if journal.exists() else 0
    while process.poll() is None and (not journal.exists() or journal.stat().st_size <= before):
        time.sleep(0.01)
    process.send_signal(end)
    said = process.communicate(timeout=60)[1].decode()
    return process.returncode, said


def test_what_was_done_is_not_done_again_after_the_process_was_stopped(folder: Path) -> None:
    """Each task is refused in no time; there are so many that the process is stopped long before the last."""
    count = 60
    probes = json.dumps([f"fbt::f{number}:entry" for number in range(count)])
    (folder / "many.toml").write_text(f'[[rewrite]]\nimages = "torn.elf"\nprobes = {probes}\n')
    out = folder / "out"
    journal = out / "journal.jsonl"
    told = stopped(started(folder, out), journal, signal.SIGINT)
    assert told == (128 + signal.SIGINT, "kinst-batch: stopped: what is done is kept; the same command goes on\n")
    first = journal.read_bytes()
    assert stopped(started(folder, out), journal, signal.SIGKILL) == (-signal.SIGKILL, "")
    second = journal.read_bytes()
    known = second.count(b"\n")
    assert second.startswith(first)
    assert first.count(b"\n") < known < count
    result = invoked(folder / "many.toml", "-o", out, "--table", "csv", "-j", "1")
    assert result.stdout.startswith(f"{count} tasks done, {known} of them before\n")
    assert journal.read_bytes().startswith(second[: second.rfind(b"\n") + 1])
    assert len(set(digests(out))) == len(digests(out)) == len(rows(out)) == count


def test_what_is_printed_can_be_json_and_tell_of_each_task(folder: Path) -> None:
    words: list[str | Path] = [
        folder / "torn.elf",
        "--probe",
        "fbt:::",
        "-o",
        folder / "out",
        "--table",
        "jsonl",
        "--format",
        "json",
    ]
    assert [one["done"] for one in json.loads(invoked(*words, "--dry-run").stdout)] == [False]
    result = invoked(*words, "-v", "-j", "1")
    told = json.loads(result.stdout)
    assert (told["tasks"], told["outcomes"]) == (1, {"rewrite": {"refused": 1}})
    assert result.stderr.startswith(f"kinst-batch: rewrite  {folder}/torn.elf  fbt:::: refused: truncated")
    (line,) = Path(told["table"]).read_text().splitlines()
    assert json.loads(line)["outcome"] == "refused"


def test_a_dry_run_prints_tasks_and_writes_nothing(folder: Path) -> None:
    result = invoked(folder / "samples", "--probe", "fbt:::", "-o", folder / "out", "--dry-run")
    lines = result.stdout.splitlines()
    assert [line.split()[1:4] for line in lines[:-1]] == [["to", "do", "rewrite"]] * 3
    assert lines[-1] == "3 tasks, 3 to do"
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: cannot be read: No such file or directory"),
        (["samples"], "samples: nothing to do with it: give --probe, -s, -n, --coverage, or --call with --inputs"),
        (["samples", "--call", "f"], "--call FUNCTION and --inputs FILE go together"),
        (["all.toml", "--probe", "x"], "all.toml: the file says what to do: leave out rewrite"),
        (["samples", "--probe", "x", "--timeout", "soon"], "--timeout soon: a number of seconds"),
        (["samples", "--probe", "x", "-o", "inputs"], "inputs: is not a folder: name one with -o"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    folder: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "all.toml").write_text(ALL)
    monkeypatch.chdir(folder)
    result = invoked(*words)
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith(f"kinst-batch: {message}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
