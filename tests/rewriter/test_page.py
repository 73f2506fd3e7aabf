"""What all pages share: colours that can be read, and places of a template."""

import re
from itertools import product

import pytest

from kinst.rewriter.shell.page import page_file, page_lines

COLOURS = dict(
    zip(
        ("light", "dark"),
        re.findall(r":root[^{]*\{([^}]*)\}", page_file("kinst.rewriter.shell", "page.css")),
        strict=True,
    )
)


def luminance(colour: str) -> float:
    """WCAG 2.2's relative luminance of #rgb or #rrggbb."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", COLOURS)
def test_text_has_the_contrast_that_level_aa_asks_for(theme: str) -> None:
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", COLOURS[theme]))
    pairs = [
        *product(("ink", "soft", "link", "good", "bad"), ("paper", "panel", "chosen")),
        ("old-ink", "old"),
        ("new-ink", "new"),
    ]
    for text, ground in pairs:
        low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (theme, text, ground)


def test_a_text_may_be_empty_and_what_no_text_is_for_stays() -> None:
    lines = list(page_lines("kinst.rewriter.diffing", "diff", {"title": "", "files": "f"}, {"a": "</script>"}))
    assert "<!-- title -->" not in lines and "<!-- verdict -->" in lines
    assert sum("</script>" in line for line in lines) == 2
