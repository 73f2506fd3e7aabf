"""What mkdocs asks while it builds: documents of the top folder become pages, and links to them lead there.

So that a link is right both where the files are read (in a checkout, on a forge) and in the site.
"""

import posixpath
import re
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
