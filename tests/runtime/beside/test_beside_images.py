"""Several images in one machine: names and probes in each of them, from when its code is there."""

from pathlib import Path
from typing import Any

import pytest

from kinst.runtime import End, Machine, Options, open_image
from kinst.targets.errors import UsageError
from tests.commands.in_process import command, kinst_run
from tests.runtime.beside.stages import EARLY, ELSEWHERE, NEXT, SIZE, firmware, next_stage
from tests.samples.machines import MACHINES

_ENTRIES = "fbt:::entry { @[probemod, probefunc] = count(); }"
_OF_FIRMWARE = {("firmware", "_start"): 1, ("firmware", "early"): 1, ("firmware", "sum"): 1, ("firmware", "copy"): 1}
_OF_NEXT = {("next", "_start"): 1, ("next", "put"): 2, ("next", "leave"): 1}


def run(path: Path, program: str, machine: Machine, options: Options | None = None) -> tuple[bytes, dict[Any, Any]]:
    """The console, and the first aggregation."""
    with open_image(path) as image, image.trace(program, machine=machine, options=options) as trace:
        assert trace.run(seconds=5) is End.POWER_OFF
        return bytes(trace.console), next((dict(one) for one in trace.aggregations.values()), {})


@pytest.mark.parametrize(
    ("target", "method"), [(NEXT, "auto"), (NEXT, "trap"), (ELSEWHERE, "emulate"), (EARLY, "auto"), (EARLY, "block")]
)
def test_a_loaded_image_has_probes_wherever_it_runs(tmp_path: Path, target: int, method: Any) -> None:
    """In its place, in a copy that firmware makes, and in one over a page in which firmware was executed."""
    first, following = firmware(tmp_path, target), next_stage(tmp_path)
    machine = Machine(images={"next": following}, clock="icount")
    plain, _ = run(first, "BEGIN", machine)
    console, counts = run(first, _ENTRIES, machine, Options(method=method))
    assert counts == _OF_FIRMWARE | _OF_NEXT
    assert console == plain  # with the sum of the stage's bytes: none was changed before it was executed
    assert plain.endswith(b"n!")


def content_of(path: Path) -> bytes:
    """The bytes that are loaded of a stage, as a file without headers has them."""
    with open_image(path) as image:
        (segment,) = (one for one in image.opened.image.segments if one.kind == 1)
        return image.opened.image.data[segment.offset : segment.offset + segment.file_size].tobytes().ljust(SIZE, b"\0")


def test_what_the_guest_brings_is_recognized_by_its_bytes(tmp_path: Path) -> None:
    """And a third one that it starts, with every instruction probed in both."""
    third = next_stage(tmp_path, name="third", start=0x4300_0000)
    following = next_stage(tmp_path, following=0x4300_0000)
    load = {NEXT: content_of(following), 0x4300_0000: content_of(third)}
    machine = Machine(load=load, stages={"next": following, "third": third}, clock="icount")
    program = "kinst:next::, kinst:third:: { @[probemod, probefunc] = count(); }"
    plain, _ = run(firmware(tmp_path, ELSEWHERE), "BEGIN", machine)
    console, counts = run(firmware(tmp_path, ELSEWHERE), program, machine)
    assert console == plain
    assert plain.endswith(b"n!t!")
    instructions = {("next", "_start"): 6, ("next", "put"): 10, ("third", "_start"): 6, ("third", "put"): 10}
    assert counts == instructions | {("next", "leave"): 2, ("third", "leave"): 2}  # hvc cannot be probed


def test_names_of_all_images_are_known(tmp_path: Path) -> None:
    """In func(), caller and stack(); in Python; of copies as of what is in its place."""
    program = """
        fbt:next:put:entry { @[func(caller)] = count(); }
        fbt:next:leave:entry { @at[stack()] = count(); }
    """
    machine = Machine(images={"next": next_stage(tmp_path)}, clock="icount")
    with open_image(firmware(tmp_path, ELSEWHERE)) as image, image.trace(program, machine=machine) as trace:
        trace.run(seconds=5)
        first, at = trace.aggregations.values()
        assert [(key.symbol, count) for key, count in first.items()] == [("next`_start", 2)]
        assert "next`leave" in str(next(iter(at)))
        assert trace.symbol(ELSEWHERE) == "next`_start"
        assert trace.symbol(EARLY) == "firmware`early"


def test_an_address_that_two_images_had_has_no_name(tmp_path: Path) -> None:
    machine = Machine(images={"next": next_stage(tmp_path)}, clock="icount")
    with open_image(firmware(tmp_path, EARLY)) as image, image.trace("BEGIN", machine=machine) as trace:
        assert trace.symbol(EARLY) == "firmware`early"
        trace.run(seconds=5)
        assert trace.symbol(EARLY) == f"{EARLY:#x}"


def test_identifiers_are_those_of_the_list(tmp_path: Path) -> None:
    first, load = str(firmware(tmp_path, NEXT)), ("--load", str(next_stage(tmp_path)))
    listed = kinst_run("-l", first, *load, "-n", "fbt:::entry")
    rows = [line.split() for line in listed.stdout.splitlines()[1:]]
    assert [row[2:4] for row in rows[-3:]] == [["next", "_start"], ["next", "put"], ["next", "leave"]]
    assert len({row[0] for row in rows}) == 7
    put = rows[-2][0]
    found = kinst_run("-q", first, *load, "-n", f"{put} {{ @[probefunc] = count(); }}")
    assert found.stdout.split()[-2:] == ["put", "2"]


def test_a_patched_file_has_its_own_probes(tmp_path: Path) -> None:
    patched = tmp_path / "patched.elf"
    command("rewrite", str(next_stage(tmp_path)), "--probe", "fbt::put:entry", "-o", str(patched))
    first = str(firmware(tmp_path, ELSEWHERE))
    plain = kinst_run("-q", first, "--load", str(next_stage(tmp_path)))
    found = kinst_run(first, "--load", f"next={patched}")
    assert [line.split()[2] for line in found.stdout.splitlines() if "put:entry" in line] == ["put:entry"] * 2
    assert plain.stdout in found.stdout.replace("\n", "") or plain.stdout[:1] == found.stdout.lstrip()[:1]


def test_one_that_does_not_come_is_told(tmp_path: Path) -> None:
    other = next_stage(tmp_path, name="other")
    words = [str(firmware(tmp_path, NEXT)), "--load", str(next_stage(tmp_path)), "--stage", f"other={other}"]
    found = kinst_run(*words, "-n", "fbt:other::entry")
    assert f"--stage {other}: other did not arrive in memory" in found.stderr
    assert found.returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--load", "firmware={}"], "another image is called firmware"),
        (["--load", "a={}", "--stage", "a={}"], "another image is called a"),
        (["--stage", "no/such/file"], "--stage no/such/file"),
        (["--stage", "a b={}"], "--stage a b: no probe description can name it"),
        (["--load", "a={}", "--load", "b={}"], "overlaps"),
        (["--load", "a={}", "--method", "jump"], "--method jump: has no handler"),
        (["--stage", "a={raw}"], "--stage"),
        (["--load", "a={}", "--call", "sum()"], "are for an image that boots"),
        (["--load", "a={}", "--snapshot-at", "END={raw}.snap"], "images of --load and --stage bring probes"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, words: list[str], why: str) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b"no image at all")
    given = [word.replace("{raw}", str(raw)).replace("{}", str(next_stage(tmp_path))) for word in words]
    found = kinst_run("-q", str(firmware(tmp_path, NEXT)), *given, "-n", "fbt:::entry")
    assert found.returncode in (1, 2)
    (line,) = found.stderr.splitlines()
    assert why in line


def test_a_file_without_headers_needs_a_name_and_a_place(tmp_path: Path) -> None:
    raw = tmp_path / "next.bin"
    raw.write_bytes(content_of(next_stage(tmp_path)))
    first = str(firmware(tmp_path, ELSEWHERE))
    program = "fbt:::entry { @[probemod] = count(); }"
    unnamed = kinst_run("-q", first, "--load", f"{raw}@{NEXT}", "-n", program)
    assert "next" not in unnamed.stdout
    named = kinst_run("-q", first, "--load", f"next={raw}@{NEXT}", "-n", program)
    assert "  next  " in named.stdout


def test_each_image_has_types_of_its_own(tmp_path: Path) -> None:
    """Those of arguments, and variables, which cannot be read before their image is there."""
    first, kernel = str(firmware(tmp_path, NEXT)), MACHINES["arm64"].image
    words = (first, "--load", str(next_stage(tmp_path)), "--stage", f"a-kernel={kernel}")
    alone = kinst_run("-lv", str(kernel), "-n", "fbt::vfs_read:entry")
    beside = kinst_run("-lv", *words, "-n", "fbt:a-kernel:vfs_read:entry")
    types = [line for line in alone.stdout.splitlines() if "args[" in line]
    assert types
    assert [line for line in beside.stdout.splitlines() if "args[" in line] == types
    unread = kinst_run("-q", *words, "-n", "fbt:next:put:entry { trace((int)a_kernel`ncpu); }")
    assert "a-kernel is not in memory" in unread.stderr


def test_python_refuses_a_name_that_no_description_can_have(tmp_path: Path) -> None:
    with open_image(firmware(tmp_path, NEXT)) as image, pytest.raises(UsageError, match="image a:b"):
        image.trace("BEGIN", machine=Machine(images={"a:b": next_stage(tmp_path)}))
