"""A checkout and the branch it left -> the files that differ, by what git says."""

import subprocess
from pathlib import Path


def changed_files(root: Path, base: str) -> frozenset[str]:
    """Paths from the top of the checkout: what was committed since it left `base`, what was not committed yet, what is
    new, and what is gone.

    Raises:
        LookupError: there is no such branch.
    """
    left = _git(root, "merge-base", base, "HEAD").strip()
    changed = _git(root, "diff", "--name-only", "--no-renames", "-z", left)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return frozenset(path for path in (changed + new).split("\0") if path)


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LookupError(done.stderr.strip() or f"git {words[0]}: status {done.returncode}")
    return done.stdout
