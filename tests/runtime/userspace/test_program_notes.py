"""Static probes and names of programs: as readelf lists them, from a file that is stripped, of one build."""

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from kinst.runtime.userspace.guest_files import GuestFile, GuestFiles
from kinst.runtime.userspace.program_notes import ProgramNotes
from kinst.runtime.userspace.program_sites import ProgramSites
from kinst.runtime.userspace.user_file import UserFile
from kinst.targets.arch.amd64 import AMD64
from kinst.targets.arch.arm64 import ARM64
from kinst.targets.errors import ImageError
from tests.writers.cpio import FILE, LINK, Entry, archive

SOURCE: Final = Path("tests/system/user_probes/noted.c").resolve()
NOTE: Final = re.compile(
    r"Provider: (\S+)\s+Name: (\S+)\s+Location: (\S+), Base: \S+, Semaphore: (\S+)\s+Arguments:(.*)"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with its names, stripped, its names alone, and another build."""
    if platform.machine() != "x86_64" or shutil.which("gcc") is None:
        pytest.skip("no gcc for amd64")
    folder = tmp_path_factory.mktemp("noted")
    for name, more in (("noted", ()), ("other", ("-DOTHER", "-O1"))):
        command = ["gcc", "-O2", "-g", "-Wl,--build-id", *more, "-o", name, SOURCE]
        subprocess.run(command, check=True, cwd=folder)
    subprocess.run(["objcopy", "--only-keep-debug", "noted", "noted.debug"], check=True, cwd=folder)
    subprocess.run(["strip", "-o", "stripped", "noted"], check=True, cwd=folder)
    return folder


def test_probes_are_those_of_readelf(built: Path) -> None:
    listed = subprocess.run(["readelf", "-nW", built / "noted"], check=True, capture_output=True, text=True).stdout
    expected = sorted(
        (provider, name.replace("__", "-"), int(place, 16), int(semaphore, 16), tuple(operands.split()))
        for provider, name, place, semaphore, operands in NOTE.findall(listed)
    )
    assert len(expected) > 1
    notes = ProgramNotes(built / "stripped", "noted", AMD64)
    found = [
        (provider, name, site.address, site.semaphore, site.operands)
        for provider, name, sites in notes.find("", "")
        for site in sites
    ]
    assert sorted(found) == expected
    assert [one.distances for _, _, (one,) in notes.find("noted", "guarded")] == [(expected[0][3] - expected[0][2],)]


def test_a_dash_may_be_two_bars(built: Path) -> None:
    notes = ProgramNotes(built / "noted", "noted", AMD64)
    assert [name for _, name, _ in notes.find("noted", "step__done")] == ["step__done"]
    assert [name for _, name, _ in notes.find("n*", "step-*")] == ["step-done"]
    assert not list(notes.find("noted", "step_done"))
    assert notes.why("noted", "step_done") == "it has no such static probe: usdt:noted:: has the others"


def test_a_note_of_another_build_is_no_probe(built: Path, tmp_path: Path) -> None:
    content = bytearray((built / "noted").read_bytes())
    ((_, _, (site,)),) = ProgramNotes(built / "noted", "noted", AMD64).find("noted", "step-done")
    content[site.offset] = 0xC3
    (tmp_path / "changed").write_bytes(content)
    notes = ProgramNotes(tmp_path / "changed", "noted", AMD64)
    assert not list(notes.find("noted", "step-done"))
    assert "no nop is where its note says" in notes.why("noted", "step-done")
    with pytest.raises(ImageError, match="is for amd64, and the guest is arm64"):
        ProgramNotes(built / "noted", "noted", ARM64)


def files(built: Path, *users: UserFile) -> GuestFiles:
    entries = [Entry("bin/noted", FILE, (built / "stripped").read_bytes()), Entry("bin/link", LINK, b"noted")]
    return GuestFiles(archive(entries), users)


def entries(file: GuestFile) -> list[str]:
    sites = ProgramSites(file.file, "noted", AMD64, file.names)
    return [function for function, _, _ in sites.find("step", "entry")]


@pytest.mark.parametrize("names", ["noted", "noted.debug"])
def test_a_stripped_program_gets_names(built: Path, names: str) -> None:
    plain = files(built)
    (bare,) = plain.find("/bin/noted")
    assert entries(bare) == []
    given = files(built, UserFile(built / names, "/bin/link"))
    for module in ("/bin/noted", "/bin/link", "noted"):
        (file,) = given.find(module)
        assert (file.path, file.names) == ("/bin/noted", built / names)
        assert entries(file) == ["step"]
    types = ProgramSites(file.file, "noted", AMD64, file.names).types.function("step")
    assert types is not None
    assert len(types.parameters or ()) == 5


def test_a_file_for_a_path_that_the_archive_does_not_have(built: Path) -> None:
    (file,) = files(built, UserFile(built / "noted", "/usr/bin/mine")).find("/usr/bin/mine")
    assert (file.path, file.file, file.names) == ("/usr/bin/mine", built / "noted", None)
    (named,) = files(built, UserFile(built / "noted")).find("/opt/noted")
    assert (named.path, named.file) == ("/opt/noted", built / "noted")


def test_names_of_another_build_are_refused(built: Path) -> None:
    given = files(built, UserFile(built / "other", "/bin/noted"))
    (file,) = given.find("/bin/noted")
    with pytest.raises(ImageError, match=r"other: made from another build: its build-id is \w+, the image's \w+"):
        entries(file)
    with pytest.raises(ImageError, match="made from another build"):
        ProgramNotes(file.file, "noted", AMD64, file.names)
