"""kinst-samples: what is copied is all of samples/, in a new folder or not at all; and the wheel has it too."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinst.samples.command import copy_samples

ROOT = Path(__file__).parent.parent.parent
NOT_COPIED = {path.name for kind in ("*.py", "*.toml") for path in (ROOT / "samples").glob(kind)}
LAUNCH = "from kinst.samples.command import copy_samples; copy_samples()"


def files(folder: Path) -> set[str]:
    """What git keeps or copies of a folder: no caches."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def test_all_samples_are_copied_as_they_are(tmp_path: Path) -> None:
    result = CliRunner().invoke(copy_samples, [str(tmp_path / "new" / "place")])

    copied = tmp_path / "new" / "place"
    assert result.exit_code == 0, result.output
    assert files(copied) == files(ROOT / "samples") - NOT_COPIED
    assert all((copied / name).read_bytes() == (ROOT / "samples" / name).read_bytes() for name in files(copied))
    assert os.access(copied / "tour.sh", os.X_OK)
    assert f"kinst-run {copied / 'kernel-amd64.elf'} -s {copied / 'd' / 'hot.d'}" in result.output


@pytest.mark.parametrize("taken", ["a file", "a folder with something in it"])
def test_what_is_there_is_left_alone(taken: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    if taken == "a file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "mine").touch()
    before = files(tmp_path)

    result = CliRunner().invoke(copy_samples, [str(place)])

    assert result.exit_code == 2
    assert result.output == f"kinst-samples: {place}: is there already: name a folder that is new or empty\n"
    assert files(tmp_path) == before


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    assert CliRunner().invoke(copy_samples, [str(tmp_path)]).exit_code == 0
    assert (tmp_path / "kernel-riscv64.elf").exists()


def test_the_documents_are_where_it_says() -> None:
    result = CliRunner().invoke(copy_samples, ["--docs"])
    assert (result.exit_code, result.output) == (0, f"{ROOT}\n")


def test_the_wheel_brings_every_document() -> None:
    """Each has a place among data-files: setuptools has no pattern for folders in folders."""
    places = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    brought = {path for patterns in places.values() for pattern in patterns for path in ROOT.glob(pattern)}
    assert {path for path in (ROOT / "docs").rglob("*.md") if path not in brought} == set()
    for place, patterns in places.items():
        folder = place.removeprefix("share/doc/kinst-rewrite").strip("/")
        assert folder == "share/man/man1" or {str(Path(one).parent) for one in patterns} == {folder or "."}


@pytest.mark.long
def test_wheels_are_reproducible_and_bring_what_is_no_module(tmp_path: Path) -> None:
    """Built twice, byte for byte the same; unpacked, kinst-samples copies what it copies here. Without the host's code
    everything would work, at a tenth of the speed."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    wheels: list[Path] = []
    for name in ("one", "two"):
        command = [sys.executable, "-m", "uv", "build", "--quiet", "-o"]
        subprocess.run([*command, tmp_path / name], cwd=ROOT, env=environment, check=True)
        wheels.extend((tmp_path / name).glob("*.whl"))
    one, two = wheels
    assert one.read_bytes() == two.read_bytes()

    zipfile.ZipFile(one).extractall(tmp_path / "installed")
    subprocess.run(
        [sys.executable, "-c", LAUNCH, tmp_path / "copied"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        check=True,
    )
    assert files(tmp_path / "copied") == files(ROOT / "samples") - NOT_COPIED
    assembled = Path("runtime", "engine", "host", "assembled")
    assert files(tmp_path / "installed" / "kinst" / assembled) == files(ROOT / assembled) != set()
