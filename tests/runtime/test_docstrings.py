"""The docstrings of the public names: their examples run, and those that users begin with have one."""

import doctest
from pathlib import Path
from typing import Any

import pytest

import kinst.runtime
from docs.generate.python import Docs, groups
from tests.runtime.attached.programs import Linux, static

ROOT = Path(__file__).parents[2]
DOCS: dict[str, Docs] = {
    name: docs
    for found in (one for names in groups().values() for one in names)
    for name, docs in [
        (found.name, found.docs),
        *((f"{found.name}.{member.name}", member.docs) for member in found.members),
    ]
}
EXAMPLES = {name: docs.example for name, docs in DOCS.items() if docs.example}


def test_what_users_begin_with_has_an_example() -> None:
    image = {f"ImageFile.{name}" for name in ("trace", "sweep", "call", "rewrite")}
    begins = {"open_image", "attach", "Machine", "Options", "Sweep", "Trace.run", "Trace.aggregation"}
    assert begins | image <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_shows(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {one: getattr(kinst.runtime, one) for one in kinst.runtime.__all__}
    if name == "attach":
        names["ql"] = Linux(static("amd64")).ql
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, None, 0)
    doctest.DocTestRunner().run(test, out=report.append)
    assert report == []
