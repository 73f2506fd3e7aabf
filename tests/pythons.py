"""Every supported Python that this machine has -> the wheel, installed there in a new virtual environment, works.

As whoever gets the wheel: without the checkout and without requirements.lock. The samples come out of it, and their
tour ends well.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_SUPPORTED = "Programming Language :: Python :: 3."


def supported() -> Iterator[str]:
    """The names of interpreters that the classifiers promise, such as python3.12."""
    return (
        f"python3.{name.removeprefix(_SUPPORTED)}" for name in PROJECT["classifiers"] if name.startswith(_SUPPORTED)
    )


def works(python: str, folder: Path) -> bool:
    """Whether the wheel installs under `python` and its commands do what the tour shows."""
    bin_folder = folder / "venv" / "bin"
    steps: list[list[str | Path]] = [
        [python, "-m", "venv", folder / "venv"],
        [bin_folder / "pip", "install", "--quiet", *folder.parent.glob("*.whl")],
        [bin_folder / "kinst-samples", folder / "samples"],
        ["env", f"PATH={bin_folder}:/usr/bin:/bin", folder / "samples" / "tour.sh", folder],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{python}: {' '.join(map(str, step))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}", file=sys.stderr)
            return False
    return True


def main() -> int:
    """Try each; 0: all that are here work."""
    argparse.ArgumentParser(prog="poe pythons", description=(__doc__ or "").partition("\n")[0]).parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "uv", "build", "--quiet", "-o", scratch], cwd=ROOT, check=True)
        for name in supported():
            found = which(name)
            if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
                print(f"{name}: not on this machine")
                continue
            folder = Path(scratch) / name
            folder.mkdir()
            well = works(found, folder)
            failed |= not well
            print(f"{name}: {'works' if well else 'FAILED'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
