"""What the repository promises about itself stays true: packages, links, README commands."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

from kinst.targets.arch.registry import NAMES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CODE = ("targets", "rewriter", "runtime")
TREES = (*CODE, "samples")  # what samples holds besides its command is data


def test_every_package_is_installed() -> None:
    """A folder with an __init__.py that setuptools is not told of would be missing from the wheel."""
    found = {
        "kinst." + ".".join(path.parent.relative_to(ROOT).parts)
        for tree in TREES
        for path in (ROOT / tree).rglob("__init__.py")
    }

    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_module_is_in_a_package() -> None:
    """A module beside no __init__.py would import from the checkout and not from the wheel."""
    orphans = [
        path for tree in CODE for path in (ROOT / tree).rglob("*.py") if not (path.parent / "__init__.py").exists()
    ]

    assert orphans == []


def test_typing_links_lead_to_the_packages() -> None:
    """mypy, pytest and import-linter see kinst.<name> through these links."""
    for tree in TREES:
        assert (ROOT / ".typing" / "kinst" / tree).resolve() == ROOT / tree


def test_dependencies_are_locked() -> None:
    """Every direct dependency has a hash-pinned version in requirements.lock."""
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    wanted = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]
    extras = [requirement for extra in PROJECT["project"]["optional-dependencies"].values() for requirement in extra]
    names = {re.split(r"[<>=\[]", requirement)[0] for requirement in wanted + extras} - {PROJECT["project"]["name"]}

    assert names <= locked


def test_repository_names_no_registry_host() -> None:
    """The lock holds versions and hashes only; where they come from is the user's own configuration."""
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_files_keep_to_one_reason_to_change() -> None:
    """A file of ours beyond 500 lines has more than one reason to change: split it."""
    long = {
        str(path.relative_to(ROOT)): lines
        for tree in TREES
        for path in (ROOT / tree).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 500
    }

    assert long == {}


def test_folders_can_be_taken_in_at_a_glance() -> None:
    """A folder of the product with more than 25 modules is a house without rooms."""
    modules = Counter(
        str(path.parent.relative_to(ROOT))
        for tree in TREES
        for path in (ROOT / tree).rglob("*.py")
        if path.name != "__init__.py"
    )
    assert {folder: count for folder, count in modules.items() if count > 25} == {}


def test_machines_are_named_in_their_records_only() -> None:
    """What differs between machines is a field of `ArchFacts`: nobody else asks which one it is, or keeps a table."""
    named = {
        f"{path.relative_to(ROOT)}: {node.value}"
        for tree in TREES
        for path in (ROOT / tree).rglob("*.py")
        if path.parent not in (ROOT / "targets" / "arch", ROOT / "targets" / "machines")
        if any(name in (text := path.read_text()) for name in NAMES)  # few do, and parsing takes long
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in NAMES
    }

    assert named == set()


_CITATION = re.compile(r"(?<![\w./-])(?:docs/|facts/|\.\./shared/)[\w./-]+\.md|\bDESIGN\b")


def test_what_a_file_cites_is_in_the_repository() -> None:
    """A reader can open each document that code or documents refer to, from the top of the checkout."""
    folders = (*TREES, "tests", "samples", "docs")
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    missing = {
        f"{path.relative_to(ROOT)}: {cited}"
        for path in files
        if path.suffix in (".py", ".md", ".toml", ".c", ".h", ".d") and path != Path(__file__)
        for cited in _CITATION.findall(path.read_text())
        if not (ROOT / cited).is_file()
    }

    assert missing == set()


def test_architecture_names_every_room_and_no_file_that_is_gone() -> None:
    """A map is trusted: what it shows is there, and what is there it shows."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = {path.parent.name for path in (ROOT / "runtime").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", text)} == set()
    paths = re.findall(r"`([a-z_]+/[a-z0-9_/]*(?:\.py)?)`", text)
    homes = [ROOT, *(ROOT / tree for tree in TREES)]
    gone = [
        path for path in paths if not any((home / path).exists() or (home / f"{path}.py").exists() for home in homes)
    ]
    assert len(paths) > 20
    assert gone == []


def test_architecture_names_nothing_that_is_gone() -> None:
    """Files without their folder, classes, functions and tables, each of which is a word of the code."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    files = [path for tree in (*TREES, "tests", "docs") for path in (ROOT / tree).rglob("*.*")]
    known = {path.stem for path in files}.union(
        *(re.findall(r"\w+", path.read_text()) for path in files if path.suffix == ".py" and path != Path(__file__))
    )
    named = re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", text)
    assert len(named) > 100
    assert {word for name in named for word in name.split(".")} - known == set()
