"""Debug information apart from the image: found by build-id and .gnu_debuglink, refused if it is another build's."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kinst.targets.debuginfo.debugfile import find_debug
from kinst.targets.debuginfo.inline_search import InlineSearch
from kinst.targets.elf.file import open_elf
from kinst.targets.elf.notes import build_id
from kinst.targets.errors import ImageError
from kinst.targets.image import open_image

FLAGS = ("-O2", "-g", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,-e,start")
SOURCE = """
volatile int device;
static inline __attribute__((always_inline)) int inlined(int value) { device = value; return device; }
void start(void) { for (;;) inlined(%d); }
"""


def build(folder: Path, *options: str, value: int = 1, name: str = "image.elf") -> Path:
    if shutil.which("gcc") is None or shutil.which("objcopy") is None:
        pytest.skip("no gcc or objcopy")
    (folder / "a.c").write_text(SOURCE % value)
    command = ["gcc", *FLAGS, *options, "-o", name, "a.c"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return folder / name


def split(image: Path, debug: Path, *, link: bool = True) -> None:
    """Takes the debug information out of an image into a file of its own."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", image, debug], check=True)
    add = [f"--add-gnu-debuglink={debug}"] if link else []
    subprocess.run(["objcopy", "--strip-all", *add, image], check=True, capture_output=True)


def has_copies(image: Path, debug: Path | None = None, folders: tuple[Path, ...] = ()) -> bool:
    elf = open_elf(image)
    found = InlineSearch(elf, find_debug(elf, debug, folders=folders)).find("inlined")
    return [copy.caller for function in found for copy in function.copies] == ["start"]


def test_in_the_image(tmp_path: Path) -> None:
    image = build(tmp_path)
    assert has_copies(image)
    assert InlineSearch(open_image(image)).find("inlined") == InlineSearch(open_elf(image)).find("inlined")


@pytest.mark.parametrize("place", ["image.debug", ".debug/image.debug"])
def test_by_link_beside_the_image(place: str, tmp_path: Path) -> None:
    image = build(tmp_path, "-Wl,--build-id=none")
    split(image, tmp_path / place)
    assert has_copies(image)


def test_by_link_in_a_debug_folder(tmp_path: Path) -> None:
    image, folder = build(tmp_path, "-Wl,--build-id=none"), tmp_path / "usr" / "lib" / "debug"
    split(image, folder / tmp_path.relative_to("/") / "image.debug")
    assert has_copies(image, folders=(folder,))


def test_by_build_id(tmp_path: Path) -> None:
    image, folder = build(tmp_path, "-Wl,--build-id=0x0123456789abcdef"), tmp_path / "debug"
    assert build_id(open_elf(image)) == bytes.fromhex("0123456789abcdef")
    split(image, folder / ".build-id" / "01" / "23456789abcdef.debug", link=False)
    assert has_copies(image, folders=(folder,))
    with pytest.raises(
        ImageError, match=r"no debug information.*--debug-file\n  looked for .*/01/23456789abcdef.debug"
    ):
        find_debug(open_elf(image), folders=(tmp_path / "nowhere",))


def test_a_file_of_another_build_is_refused(tmp_path: Path) -> None:
    image = build(tmp_path, "-Wl,--build-id=none")
    split(image, tmp_path / "image.debug")
    other = build(tmp_path, "-Wl,--build-id=none", value=2, name="other.elf")
    split(other, tmp_path / "image.debug", link=False)
    with pytest.raises(ImageError, match=r"image\.debug: made from another build: its CRC is 0x[0-9a-f]{8}"):
        has_copies(image)


def test_a_changed_file_is_refused_that_a_link_leads_to(tmp_path: Path) -> None:
    image, debug = build(tmp_path, "-Wl,--build-id=0x1111"), tmp_path / "image.debug"
    split(image, debug)
    assert has_copies(image)
    debug.write_bytes(debug.read_bytes() + b"\0")
    with pytest.raises(
        ImageError, match=r"image\.debug: damaged or changed: its CRC is 0x[0-9a-f]{8}, \.gnu_debuglink"
    ):
        has_copies(image)
    assert has_copies(image, debug)  # the user says so, and it has the build-id


def test_another_build_id_is_refused(tmp_path: Path) -> None:
    image = build(tmp_path, "-Wl,--build-id=0x1111")
    other = build(tmp_path, "-Wl,--build-id=0x2222", name="other.elf")
    with pytest.raises(
        ImageError, match=r"other\.elf: made from another build: its build-id is 2222, the image's 1111"
    ):
        has_copies(image, other)


def test_other_code_is_refused_without_any_id(tmp_path: Path) -> None:
    image = build(tmp_path, "-Wl,--build-id=none")
    other = build(tmp_path, "-Wl,--build-id=none", "-Wl,-Ttext=0x800000", name="other.elf")
    with pytest.raises(ImageError, match=r"made from another build: \.text is at 0x800000"):
        has_copies(image, other)
    assert has_copies(image, image)


def test_a_module_and_its_debug_file(tmp_path: Path) -> None:
    """Addresses in a module are file offsets: those of the module, not of its debug file, where no code lies."""
    (tmp_path / "a.c").write_text(SOURCE % 1 + "int first(int a) { return inlined(a); }")
    command = ["gcc", "-O2", "-g", "-ffreestanding", "-ffunction-sections", "-c", "-o", "module.ko", "a.c"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    module, debug = tmp_path / "module.ko", tmp_path / "module.debug"
    subprocess.run(["objcopy", "--only-keep-debug", module, debug], check=True)
    subprocess.run(["objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", module], check=True)
    (found,) = InlineSearch(open_elf(module)).find("inlined")
    symbols = open_elf(module).symbols

    assert open_elf(debug).symbols.address_of("first") != symbols.address_of("first")
    assert {copy.caller: copy.caller_address for copy in found.copies} == {
        name: symbols.address_of(name) for name in ("first", "start")
    }
    assert all(0 <= copy.entry - copy.caller_address < 32 for copy in found.copies)


def test_a_few_symbols_of_the_image_are_not_all(tmp_path: Path) -> None:
    image = build(tmp_path)
    debug = tmp_path / "image.debug"
    subprocess.run(["objcopy", "--only-keep-debug", image, debug], check=True)
    subprocess.run(["objcopy", "--strip-debug", "--strip-symbol=start", image], check=True)
    assert open_elf(image).symbols.address_of("device") is not None
    assert has_copies(image, debug)


def test_no_debug_information_and_no_way_to_it(tmp_path: Path) -> None:
    image = build(tmp_path, "-Wl,--build-id=none", "-s")
    with pytest.raises(
        ImageError, match=r"no debug information .*neither a build-id nor \.gnu_debuglink.*--debug-file"
    ):
        has_copies(image)


def test_a_debug_file_without_debug_information(tmp_path: Path) -> None:
    image = build(tmp_path)
    bare = build(tmp_path, "-s", name="bare.elf")
    with pytest.raises(ImageError, match=r"bare\.elf: no debug information"):
        has_copies(image, bare)


@pytest.mark.parametrize("version", [4, 5])
def test_split_dwarf_is_refused_with_its_file(version: int, tmp_path: Path) -> None:
    image = build(tmp_path, f"-gdwarf-{version}", "-gsplit-dwarf")
    with pytest.raises(ImageError, match=r"split DWARF is not supported: .* at 0x0 is in \S*\.dwo:"):
        has_copies(image)


def test_dwz_is_refused(tmp_path: Path) -> None:
    image = build(tmp_path)
    (tmp_path / "alt").write_bytes(b"common.debug\0" + bytes(20))
    subprocess.run(["objcopy", f"--add-section=.gnu_debugaltlink={tmp_path / 'alt'}", image], check=True)
    with pytest.raises(ImageError, match=r"supplementary file \(dwz, \.gnu_debugaltlink\)"):
        has_copies(image)
