"""Types and symbols that are not in the image: in a debug file, in kernel modules."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.runtime.cli import run
from kinst.targets.c_types import Aggregate, Pointer, size_of
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.errors import ImageError
from kinst.targets.image import Image, open_image
from tests.targets.debuginfo.compiled import compiled

MAIN = """
struct thing { int before; long value; struct thing *next; };
struct same { char small; };
enum mode { OFF, ON = 7 };
struct thing thing;
struct same same;
enum mode mode;
long find(struct thing *from, long key) { return from->value + key + same.small + mode; }
void start(void) { thing.value = find(&thing, 1); }
"""
MODULE = """
struct extra { long a, b; };
struct same { long large[4]; };
enum { EXTRA = 5 };
struct extra extra;
struct same same;
int use(void) { return extra.a + EXTRA; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """image.elf, its stripped copy, what was stripped, and a module."""
    folder = tmp_path_factory.mktemp("apart")
    compiled(folder, "amd64", {"main.c": MAIN}, "-g", "-Wl,--build-id=sha1")
    for options in (("--only-keep-debug", "image.elf", "apart.debug"), ("--strip-all", "image.elf", "bare.elf")):
        subprocess.run(["objcopy", *options], cwd=folder, check=True)
    (folder / "extra.c").write_text(MODULE)
    subprocess.run(["gcc", "-g", "-O1", "-c", "-o", "extra.ko", "extra.c"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def bare(folder: Path) -> Image:
    return open_image(folder / "bare.elf")


def test_a_stripped_image_tells_nothing(bare: Image) -> None:
    types = image_types(bare)
    assert types.type_named("struct thing") is None
    assert types.symbol("thing") is None


def test_a_debug_file_has_types_and_symbols(folder: Path, bare: Image) -> None:
    types, whole = image_types(bare, debug_file=folder / "apart.debug"), image_types(open_image(folder / "image.elf"))
    found, expected = types.symbol("thing"), whole.symbol("thing")
    assert found is not None and expected is not None
    assert (found.address, found.size, found.module) == (expected.address, 24, "bare")
    assert isinstance(found.type, Aggregate) and found.type is types.type_named("struct thing")
    function = types.function("find")
    assert function is not None and function.parameters is not None
    assert function.parameters[0] == Pointer(found.type)


def test_a_debug_file_of_another_build_is_refused(folder: Path, bare: Image, tmp_path: Path) -> None:
    compiled(tmp_path, "amd64", {"main.c": MAIN + "int more;"}, "-g", "-Wl,--build-id=sha1")
    with pytest.raises(ImageError, match="made from another build"):
        image_types(bare, debug_file=tmp_path / "image.elf")


def test_a_module_adds_types_and_the_image_goes_first(folder: Path) -> None:
    types = image_types(open_image(folder / "image.elf"), modules={"extra": folder / "extra.ko"})
    sizes = {
        (name, module): size_of(found)
        for name in ("struct same", "struct extra", "struct thing")
        for module in ("", "extra", "image", "nosuch")
        if (found := types.type_named(name, module)) is not None
    }
    assert sizes == {
        ("struct same", ""): 1, ("struct same", "image"): 1, ("struct same", "extra"): 32,
        ("struct extra", ""): 16, ("struct extra", "extra"): 16,
        ("struct thing", ""): 24, ("struct thing", "image"): 24,
    }  # fmt: skip
    enumerators = [types.enumerator(name) for name in ("ON", "EXTRA", "nosuch")]
    assert [found and found[1] for found in enumerators] == [7, 5, None]
    assert types.symbol("extra") is None  # it is nowhere: nobody loaded it
    used = types.function("use", "extra")
    assert used is not None and (size_of(used.result), used.parameters) == (4, ())
    assert types.function("use") is None and types.function("find", "extra") is None


def test_a_program_names_what_is_apart(folder: Path) -> None:
    program = """BEGIN {
        printf("%d %d ", sizeof (struct thing), offsetof(struct thing, next));
        printf("%d %d %d\\n", sizeof (struct extra), sizeof (extra`struct same), ON); exit(0);
    }"""
    options = ["--debug-file", str(folder / "apart.debug"), "--module", f"extra={folder / 'extra.ko'}"]
    result = CliRunner().invoke(run, ["-q", "-n", program, *options, str(folder / "bare.elf")])
    assert (result.stdout, result.exit_code) == ("24 16 16 32 7\n\n", 0), result.stderr


@pytest.mark.parametrize("text", ["extra", "=x.ko", "extra="])
def test_a_module_has_a_name_and_a_file(folder: Path, text: str) -> None:
    result = CliRunner().invoke(run, ["-e", "-n", "BEGIN", "--module", text, str(folder / "bare.elf")])
    assert result.exit_code == 2 and "NAME=FILE" in result.stderr


def test_a_module_that_is_not_there_is_an_error(folder: Path) -> None:
    result = CliRunner().invoke(run, ["-e", "-n", "BEGIN", "--module", "x=/nosuch.ko", str(folder / "bare.elf")])
    assert result.exit_code == 1 and "/nosuch.ko: cannot be read" in result.stderr
