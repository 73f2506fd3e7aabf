"""Tables of the README and of docs/ say what the code says."""

import re

from kinst.runtime.tracing.output_format import Format
from tests.docs.pages import ROOT
from tests.system.cases import CASES


def test_image_table_lists_what_the_system_tests_boot() -> None:
    """The support matrix is the list of the cases that the tests run, no more and no less."""
    rows = re.findall(
        r"^\| `([a-z0-9.-]+)` \| `([a-z0-9-]+)` \|", (ROOT / "docs" / "limits.md").read_text(), re.MULTILINE
    )

    assert set(rows) == {(case.image, case.machine) for case in CASES}


def test_each_format_of_the_output_is_described() -> None:
    text = (ROOT / "docs" / "formats.md").read_text()
    named = set(re.findall(r"`(\w+)`", text)).union(*map(str.split, re.findall(r"^## ([\w, ]+)", text, re.MULTILINE)))
    assert {form.value for form in Format} <= {name.rstrip(",") for name in named}
