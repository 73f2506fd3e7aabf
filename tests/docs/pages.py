"""The README and the pages of docs/ -> their examples, in order, and what the examples name.

How to write one:

    ```console
    $ kinst-list samples/kernel-arm64.elf 'fbt::vfs_read:
    > entry'
    ...
    ```

A line with `$ ` is a command, those with `> ` behind it go on with it, and the rest is all that it prints, stdout and
stderr; a line of three dots stands for any lines. A block of `python` with a block of `text` right behind it is a
program and what it prints. What a page names of `PLACES` is there, and so are `samples/` and the commands.

The blocks of a page run one after the other in one folder, so that one may use what another wrote. A page with the line
`<!-- long -->` runs with the tests that take long (`poe test-long`), and only such a page may name a kernel that is not
downloaded for every run: where it is not at hand, the page is skipped.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinst.samples import debian_images
from tests.image_list import EXACT, FILES, IMAGES, SMALL

ROOT: Final = Path(__file__).parents[2]
# What a page calls a real image -> its name in tests/image_list.py. `kinst-samples --fetch` puts it there.
PLACES: Final = {
    image.place: next(name for name, exact in EXACT.items() if exact == fetched and name in IMAGES | FILES)
    for fetched, image in debian_images.IMAGES.items()
}
_BLOCK: Final = re.compile(
    r"^```console\n(?P<console>.*?)^```|^```python\n(?P<program>.*?)^```\n\n```text\n(?P<printed>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_STEP: Final = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a shell, or a program in Python, and what is shown of its output."""

    code: str
    shown: str
    is_python: bool


@dataclass(frozen=True, slots=True)
class Page:
    """One document, by its path from the top of the checkout."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def takes_long(self) -> bool:
        return "\n<!-- long -->\n" in self.text

    @property
    def images(self) -> dict[str, str]:
        """The real images that the page names: place -> name."""
        text = self.text
        named = {place: name for place, name in PLACES.items() if re.search(rf"(?<![\w/-]){re.escape(place)}\b", text)}
        return {place: name for place, name in named.items() if self.takes_long or name in SMALL}

    @property
    def blocks(self) -> list[list[Example]]:
        """The examples of each block, in the order of the page."""
        found = (match.groupdict() for match in _BLOCK.finditer(self.text))
        return [
            [Example(block["program"], block["printed"], is_python=True)]
            if block["program"]
            else [
                Example(command.replace("\n> ", "\n"), shown, is_python=False)
                for command, shown in _STEP.findall(block["console"])
            ]
            for block in found
        ]


PAGES: Final = [Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]
