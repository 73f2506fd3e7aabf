"""The site builds without a warning, its links and anchors lead somewhere, and it takes nothing from elsewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate.site import commands, on_page_content
from tests.docs.pages import PAGES, ROOT
from tests.docs.tasks import TASKS

ASKED_FOR = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*?\bsrc=["']?(?:https?:)?//|<link\b[^>]*?\bhref=["']?(?:https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `poe docs` builds. It must not be --quiet: then mkdocs counts no warnings, and --strict finds none."""
    folder, task = tmp_path_factory.mktemp("site"), TASKS["docs"]
    result = subprocess.run(
        [sys.executable, "-m", *shlex.split(task["cmd"]), "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | task["env"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    assert "Documentation built" in result.stderr
    return folder


def test_every_document_is_a_page(site: Path) -> None:
    expected = {page.path.relative_to(ROOT / "docs").with_suffix(".html") for page in PAGES if page.name != "README.md"}
    assert {path for path in expected if not (site / path).is_file()} == set()
    assert "DTrace for any kernel" in (site / "index.html").read_text()


def test_pages_take_nothing_from_elsewhere(site: Path) -> None:
    asking = {str(path): found[0] for path in site.rglob("*.html") if (found := ASKED_FOR.search(path.read_text()))}
    assert asking == {}
    assert "@import" not in "".join(path.read_text() for path in site.rglob("*.css"))


def test_the_copy_button_gives_commands_and_neither_prompts_nor_output() -> None:
    shown = "$ kinst-run a.elf \\\n>     -n 'BEGIN { exit(0); }\n> '\nkinst-run: matched\n> no command\n$ ls\na.elf\n"
    assert commands(shown) == "kinst-run a.elf \\\n    -n 'BEGIN { exit(0); }\n'\nls"
    html = '<div class="highlight"><code><span class="gp">$ </span>ls &gt; f\n<span class="go">x</span></code></div>'
    assert on_page_content(html).startswith('<div data-copy="ls &gt; f" class="highlight">')
    plain = '<div class="highlight"><pre><code>ls</code></pre></div>'
    assert on_page_content(plain) == plain
