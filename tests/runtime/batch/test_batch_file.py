"""A batch file -> its tasks, and one line for what is wrong with it."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from kinst.rewriter.shell.progress import silent
from kinst.runtime.batch.batch_file import Batch, BatchReader
from kinst.runtime.batch.input_files import FileTable
from kinst.runtime.batch.tasks import Call, Rewrite, Run
from kinst.targets.errors import KinstError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.elf", "more/b.o", "more/deep/c"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x7fELF" + name.encode())
    (tmp_path / "more" / "notes.txt").write_text("no image")
    (tmp_path / "more" / "driver.ko.xz").write_bytes(b"\xfd7zXZ\0")
    (tmp_path / "count.d").write_text("fbt:::entry { @ = count(); }")
    (tmp_path / "lines").write_text("1\n2\n3\n")
    return tmp_path


def batch(folder: Path, text: str) -> Batch:
    return BatchReader(FileTable(folder, silent), "1.0", folder).batch(tomllib.loads(text))


def test_images_times_probes(folder: Path) -> None:
    found = batch(
        folder,
        'timeout = "2m"\nmemory = "1g"\n[[rewrite]]\nimages = ["*.elf", "more", "a.elf"]\nprobes = ["x:::", "y:::"]',
    )
    assert (found.timeout, found.memory) == (120, 1 << 30)
    images = ["a.elf", "more/b.o", "more/driver.ko.xz", "more/deep/c"]
    assert [(task.image.name, task.work) for task in found.tasks] == [
        (image, Rewrite(probes)) for image in images for probes in ("x:::", "y:::")
    ]


def test_runs_times_inputs(folder: Path) -> None:
    text = """
    [[run]]
    images = "a.elf"
    scripts = "count.d"
    programs = ["BEGIN { exit(0); }"]
    command-lines = ["quiet", "debug"]
    initrds = ["lines"]
    options = { destructive = true, strsize = "1k" }
    timeout = "500ms"
    on-panic = "continue"
    report = true
    """
    works = [task.work for task in batch(folder, text).tasks]
    assert all(isinstance(work, Run) for work in works)
    assert [(work.what, work.given) for work in works] == [
        (title, f"{line}, lines") for title in ("count.d", "BEGIN { exit(0); }") for line in ("quiet", "debug")
    ]
    first = works[0]
    assert isinstance(first, Run)
    assert (first.program, first.is_script) == ("fbt:::entry { @ = count(); }", True)
    assert (first.seconds, first.options) == (0.5, (("destructive", None), ("strsize", "1k")))
    assert (first.ends_on_panic, first.has_report) == (False, True)


def test_inputs_are_cut_into_tasks(folder: Path) -> None:
    text = '[[call]]\nimages = "a.elf"\nfunction = "f"\ninputs = "lines"\narguments = ["0"]\nchunk = 3'
    works = [task.work for task in batch(folder, text).tasks]
    assert [(work.first, work.inputs) for work in works if isinstance(work, Call)] == [
        (0, ("0", "1", "2")),
        (3, ("3",)),
    ]


def test_digests_follow_from_content_and_nothing_else(folder: Path) -> None:
    text = '[[rewrite]]\nimages = "a.elf"\nprobes = "x:::"'
    (task,) = batch(folder, text).tasks
    assert batch(folder, text).tasks[0].digest() == task.digest()
    assert len({task.digest(), replace(task, version="2").digest(), replace(task, work=Rewrite("y:::")).digest()}) == 3
    (folder / "a.elf").write_bytes(b"\x7fELF other")
    assert batch(folder, text).tasks[0].digest() != task.digest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing to do: give [[rewrite]], [[run]] or [[call]]"),
        ("[[rewrit]]", "rewrit: no such key: did you mean rewrite?"),
        ("[rewrite]", "rewrite: write it as [[rewrite]]"),
        ('[[rewrite]]\nprobes = "x:::"', "[[rewrite]]: images: there are none"),
        ('[[rewrite]]\nimages = "a.elf"', "[[rewrite]]: probes: there are none"),
        ('[[rewrite]]\nimages = "nowhere*"\nprobes = "x:::"', "nowhere*: there is no image"),
        ('[[rewrite]]\nimages = [1]', "[[rewrite]]: images = [1]: not a text, or a list of texts"),
        ('[[rewrite]]\nprobe = "x:::"', "[[rewrite]]: probe: no such key: did you mean probes?"),
        ('[[rewrite]]\nimages = "a.elf"\nprobes = "x"\nmethod = "magic"', "method = 'magic': one of "),
        ('[[run]]\nimages = "a.elf"\ncpus = 99999999999', "[[run]]: cpus = 0x174876e7ff: not from 0 to 1,000,000,000"),
        ('[[run]]\nimages = "a.elf"\ncpus = -1', "[[run]]: cpus = -1: not from 0 to "),
        ('[[run]]\nimages = "a.elf"\ncpus = 0x' + "9" * 9999, "[[run]]: cpus = 0x9"),
        ('[[run]]\nimages = "a.elf"\ncpus = "2"', "[[run]]: cpus = '2': not a whole number"),
        ('[[run]]\nimages = "a.elf"\nreport = 1', "[[run]]: report = 1: not true or false"),
        ('[[run]]\nimages = "a.elf"\ncpus = true', "[[run]]: cpus = True: not a whole number"),
        ('[[run]]\nimages = "a.elf"\nprograms = "END"\non-panic = "no"', "on-panic = 'no': one of end, continue"),
        ('[[run]]\nimages = "a.elf"\nscripts = "nowhere.d"', "failed to open "),
        ('[[run]]\nimages = "a.elf"\ninitrds = "nowhere"', "nowhere: cannot be read: No such file or directory"),
        ('[[call]]\nimages = "a.elf"\nfunction = "f"', "[[call]]: give a function, and inputs (a file) or arguments"),
        ('[[call]]\nimages = "a.elf"\nfunction = "f"\narguments = "1"\nchunk = 0', "[[call]]: chunk = 0: at least 1"),
        ('timeout = "soon"', "timeout soon: a number of seconds"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_line(folder: Path, text: str, message: str) -> None:
    with pytest.raises(KinstError) as caught:
        batch(folder, text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
