"""Of the tests, those that can see a change: by imports, by names that are put together, by what is read."""

from pathlib import Path

import pytest

from tests.check.imports import Imports, imports_of
from tests.check.selection import ALWAYS, selected

ROOT = Path(__file__).parents[2]
EVERY = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))

UNHEARD_OF = "-".join(("un", "heard", "of"))  # not named here either


@pytest.fixture(scope="module")
def imports() -> Imports:
    return imports_of(ROOT)


def test_a_module_selects_who_imports_it_nearest_first(imports: Imports) -> None:
    found = selected(["runtime/machine/devices/riscv/goldfish_rtc.py"], imports)
    near, far = "tests/runtime/machine/devices/test_goldfish_rtc.py", "tests/runtime/machine/test_arm64_machine.py"
    assert found[: len(ALWAYS)] == ALWAYS
    assert len(ALWAYS) <= found.index(near) < found.index(far)
    assert "tests/runtime/dlang/syntax/test_parser.py" not in found


def test_a_test_selects_itself(imports: Imports) -> None:
    assert selected(["tests/rewriter/test_slots.py"], imports) == (*ALWAYS, "tests/rewriter/test_slots.py")


@pytest.mark.parametrize(
    ("changed", "seeing"),
    [
        # A registry imports `f"kinst.runtime.trap.arch.{name}"`.
        ("runtime/trap/arch/riscv64.py", "tests/system/test_exact_hits.py"),
        ("targets/machines/registry.py", "tests/runtime/machine/test_arm64_machine.py"),
        # Programs start from the console scripts, which nobody imports who runs them.
        ("rewriter/list_command.py", "tests/docs/test_examples.py"),
        ("runtime/cli.py", "tests/commands/test_completion.py"),
        # What is no module is seen by who reads it.
        ("tests/dlang/aggs/tst.new.d", "tests/dlang/test_programs.py"),
        ("docs/guide/modules.md", "tests/docs/test_examples.py"),
        ("samples/kernel-arm64.elf", "tests/samples/test_samples.py"),
        ("runtime/consumer/report/pages/report.html", "tests/runtime/test_report.py"),
        # What is gone was a part of its package.
        ("tests/vectors/gone.py", "tests/targets/arch/test_registry.py"),
    ],
)
def test_what_no_import_says_is_seen(imports: Imports, changed: str, seeing: str) -> None:
    found = selected([changed], imports)
    assert seeing in found
    assert len(found) < len(EVERY)


@pytest.mark.parametrize("changed", ["tests/conftest.py", "pyproject.toml", "requirements.lock", UNHEARD_OF])
def test_what_all_depend_on_selects_all(imports: Imports, changed: str) -> None:
    assert sorted(selected([changed, "LICENSE"], imports)) == EVERY


def test_what_no_test_can_see_selects_none(imports: Imports) -> None:
    assert selected(["LICENSE", ".github/pull_request_template.md"], imports) == ()
    assert selected([], imports) == ()


def test_a_package_selects_all_that_is_in_it(imports: Imports) -> None:
    """Whoever imports a module runs the `__init__` of its package before."""
    found = selected(["tests/fuzz/__init__.py"], imports)
    assert {path for path in EVERY if path.startswith("tests/fuzz/")} <= set(found)
