"""mypy, which remembers from clone to clone what it found: a fresh one, as of the gate, costs it two minutes.

What it remembers it believes only of files whose text is the same, by their hash. It is kept beside the real images in
~/.cache/kinst-rewrite, copied into a clone that has nothing of its own, and copied back when all is well: two of
mypy's processes never write to the same place.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from kinst.rewriter.shell.cache_home import cache_home
from tests.check.steps import ROOT

OWN: Final = ROOT / ".mypy_cache"


def kept() -> Path:
    """Where all clones find it."""
    return cache_home() / "kinst-rewrite" / "mypy"


def copied(source: Path, target: Path) -> None:
    """A whole copy or none, in the place of what was there. Who copies to the same place at the same time may win."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}-") as folder:
        new, old = Path(folder) / "new", Path(folder) / "old"
        shutil.copytree(source, new)
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except OSError:
            return


def main(words: list[str], own: Path = OWN) -> int:
    """The command's status."""
    if not own.exists() and kept().exists():
        copied(kept(), own)
    status = subprocess.run(words, cwd=ROOT, check=False).returncode
    if status == 0 and own.exists():
        copied(own, kept())
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
