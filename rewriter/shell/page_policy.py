"""The script and the styles of a page -> its Content-Security-Policy: these run, and nothing else that gets into it.

Names and texts of a page come from images and guests, and are escaped; should one ever not be, a browser still neither
runs it nor sends anything anywhere. What is allowed is named by its digest.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from kinst.targets.values import dataclass

_DARK: Final = "@media (prefers-color-scheme: dark)"
_CHOSEN: Final = (_DARK, "@media all", "@media not all")  # by the system; by the user, in a page that shows a picture


@dataclass(frozen=True, slots=True)
class Code:
    """The whole text of a script's and of a style's element. `has_style_attributes`: as flame graphs have."""

    script: str
    style: str
    has_style_attributes: bool = False


def page_policy(page: Code, pictures: Sequence[Code] = ()) -> str:
    """The policy of an HTML page, which may show pictures in frames: a frame inherits its page's policy."""
    frames = ["frame-src blob:"] if pictures else []
    styles = [page.style, *(style for picture in pictures for style in _variants(picture))]
    return _policy([page, *pictures], styles, frames)


def picture_policy(picture: Code) -> str:
    """The policy of an SVG picture, alone or in a page."""
    return _policy([picture], _variants(picture), [])


def _variants(picture: Code) -> Iterable[str]:
    return dict.fromkeys(picture.style.replace(_DARK, theme) for theme in _CHOSEN)


def _policy(codes: Sequence[Code], styles: Iterable[str], more: Sequence[str]) -> str:
    attributes = ["style-src-attr 'unsafe-inline'"] if any(one.has_style_attributes for one in codes) else []
    scripts = " ".join(_digest(one.script) for one in codes)
    allowed = [f"script-src {scripts}", f"style-src {' '.join(map(_digest, styles))}", *attributes, *more]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
