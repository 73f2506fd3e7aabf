"""A checkout -> which module needs which: its imports, by grimp, and the modules that its text names otherwise.

Registries import by a name that they put together (``f"kinst.targets.machines.{name}"``), and tests start Python with a
program in a string. grimp sees neither; so whatever a module writes of our dotted names counts, and one that ends in
a dot stands for all modules of that package.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grimp

# Package -> the folder of the checkout that it is, for all code that tests can reach.
TREES: Final[Mapping[str, str]] = {
    "kinst.targets": "targets",
    "kinst.rewriter": "rewriter",
    "kinst.runtime": "runtime",
    "kinst.samples": "samples",
    "docs": "docs",
    "tests": "tests",
}
_NAME: Final = re.compile(r"\b(?:kinst|docs|tests)(?:\.\w+)+\.?")
_COMMANDS: Final = (
    "kinst.rewriter.commandline.entry"  # the console scripts, which nobody imports who runs them as a process
)
_RUNS_COMMANDS: Final = re.compile(r"\[\"project\"\]\[\"scripts\"\]|\btests\.commands\.launchers\b")


@dataclass(frozen=True, slots=True)
class Imports:
    """All modules of a checkout by the file that each is, and who needs each of them."""

    modules: Mapping[str, str]  # path from the top of the checkout -> dotted name
    users: Mapping[str, frozenset[str]]  # dotted name -> the modules that need it
    texts: Mapping[str, str]  # dotted name -> source

    def reached(self, changed: Iterable[str]) -> dict[str, int]:
        """The modules that need one of those that changed, each with its distance: how many imports lie between."""
        found = dict.fromkeys(changed, 0)
        waiting = list(found)
        for name in waiting:  # which grows: nearest first
            for user in sorted(self.users.get(name, ())):
                if user not in found:
                    found[user] = found[name] + 1
                    waiting.append(user)
        return found


def imports_of(root: Path) -> Imports:
    """Read a checkout, which must be the one that these packages are imported from."""
    graph = grimp.build_graph(*TREES, cache_dir=None)
    modules = {str(path.relative_to(root)): name for name in graph.modules if (path := _path(root, name)) is not None}
    texts = {name: (root / path).read_text() for path, name in modules.items()}
    users = defaultdict[str, set[str]](set)
    for name, text in texts.items():
        for needed in graph.find_modules_directly_imported_by(name) | _named(text, texts):
            users[needed].add(name)
    return Imports(modules, {name: frozenset(found - {name}) for name, found in users.items()}, texts)


def _path(root: Path, name: str) -> Path | None:
    """The file of a module. None: a folder without one."""
    tree = next(tree for tree in TREES if name == tree or name.startswith(f"{tree}."))
    path = root.joinpath(TREES[tree], *name.removeprefix(tree).split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _named(text: str, modules: Mapping[str, str]) -> set[str]:
    """Our modules whose names are in a text."""
    words = set(_NAME.findall(text))
    prefixes = tuple(word for word in words if word.endswith("."))
    found = words & modules.keys()
    found |= {name for name in modules if name.rpartition(".")[0] + "." in prefixes} if prefixes else set()
    return found | {_COMMANDS} if _RUNS_COMMANDS.search(text) else found
