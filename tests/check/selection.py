"""Changed files -> the tests that can see them, nearest first.

A module is seen by all that import it, however far away. A file that is no module is seen by those who name it or its
folder, and by the package that it lies in. What nobody names, and what holds for all tests, selects all of them.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from tests.check.imports import TREES, Imports

# Tests that read all files instead of importing them.
ALWAYS: Final = ("tests/test_house.py",)
# What every test depends on, whatever it imports.
_FOR_ALL: Final = frozenset(("pyproject.toml", "requirements.lock"))
# Who reads files of the checkout that are no part of a package.
_READERS: Final = ("tests.", "docs.", "kinst.samples.")
# What no test depends on: how changes are handled, not what they do.
_FOR_NONE: Final = (".github/", ".ci/", ".gitignore", ".pre-commit-config.yaml", "LICENSE")


def selected(changed: Iterable[str], imports: Imports) -> tuple[str, ...]:
    """Paths of test files; none if nothing changed that a test could see."""
    modules = set[str]()
    for path in changed:
        if path.startswith(_FOR_NONE):
            continue
        found = set(_seeing(path, imports))
        if path in _FOR_ALL or not found:
            return _tests(dict.fromkeys(imports.modules.values(), 0), imports)
        modules |= found
    return _tests(imports.reached(modules), imports) if modules else ()


def _seeing(path: str, imports: Imports) -> Iterator[str]:
    """The modules that a file is, or that see it without an import."""
    pure = PurePosixPath(path)
    if pure.name in ("conftest.py", "__init__.py"):  # for all that is below
        below = f"{pure.parent}/"
        yield from (name for other, name in imports.modules.items() if other.startswith(below))
    elif path in imports.modules:
        yield imports.modules[path]
    elif pure.suffix != ".py" or pure.parts[0] not in TREES.values():
        yield from _reading(pure, imports)
    else:
        yield from _package_of(pure, imports)  # it is gone, or was never a module


def _reading(path: PurePosixPath, imports: Imports) -> Iterator[str]:
    """Who reads a file that is no module."""
    words = [path.name, *(part for part in path.parts[:-1] if part != "tests")]
    quoted = re.compile(rf"""["'/](?:{"|".join(map(re.escape, words))})["'/]""")
    yield from (name for name, text in imports.texts.items() if name.startswith(_READERS) and quoted.search(text))
    yield from _package_of(path, imports)


def _package_of(path: PurePosixPath, imports: Imports) -> Iterator[str]:
    """The modules of the nearest folder above that has any."""
    for folder in path.parents[:-1]:
        found = [name for other, name in imports.modules.items() if PurePosixPath(other).parent == folder]
        if found:
            yield from found
            return


def _tests(distances: dict[str, int], imports: Imports) -> tuple[str, ...]:
    """Those of the modules that are tests."""
    found = {
        path: distances[name]
        for path, name in imports.modules.items()
        if name in distances and PurePosixPath(path).name.startswith("test_")
    }
    found |= dict.fromkeys(ALWAYS, -1)
    return tuple(sorted(found, key=lambda path: (found[path], path)))
