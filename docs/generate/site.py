"""What mkdocs asks while it builds: documents of the top folder become pages, and links to them lead there.

So that a link is right both where the files are read (in a checkout, on a forge) and in the site.
"""

import posixpath
import re
from html import escape, unescape
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
# A document outside of docs/, from the top of the checkout -> its page.
PAGES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "samples/README.md": "samples.md",
}
_SOURCES: Final = {page: source for source, page in PAGES.items()}
_CONSOLE: Final = re.compile(r'<div class="highlight">(.*?)</code>', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")
_PROMPT, _MORE = "$ ", ">"  # of a shell, and of the other lines of a command
_LINK: Final = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents that are outside of docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make each relative link of a page that was right from where its document is one from where the page is."""
    here = page.file.src_uri
    source = _SOURCES.get(here, f"docs/{here}")

    def linked(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        target = PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else f"/{target}")
        return match[1] + (
            target if target.startswith("/") else posixpath.relpath(target, posixpath.dirname(here) or ".")
        )

    return _LINK.sub(linked, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Let the copy button of a block of a terminal give what was typed there, without prompts and what was printed."""

    def told(match: re.Match[str]) -> str:
        typed = commands(unescape(_TAG.sub("", match[1])))
        return match[0].replace("<div ", f'<div data-copy="{escape(typed)}" ', 1) if typed else match[0]

    return _CONSOLE.sub(told, html)


def commands(text: str) -> str:
    """What was typed in a block of a terminal: the lines behind prompts."""
    typed, is_open = [], False
    for line in text.splitlines():
        is_open = line.startswith(_PROMPT) or (is_open and line.startswith(_MORE))
        if is_open:
            typed.append(line.removeprefix(_PROMPT) if line.startswith(_PROMPT) else line[2:])
    return "\n".join(typed)
