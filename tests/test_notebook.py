"""samples/notebook.ipynb runs from its first cell to its last, and shows what it has shown."""

from typing import Any

import pytest

from tests.notebook import executed, read

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of what runs kernels


def outputs(notebook: Any) -> list[Any]:
    """What cells show; of a picture only that there is one, since it has the page's script in it."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    for output in found:
        if "image/svg+xml" in output.get("data", ()):
            output["data"]["image/svg+xml"] = output["data"]["image/svg+xml"][:4]
    return found


def test_the_notebook_shows_what_it_has_shown() -> None:
    before, now = outputs(read()), outputs(executed())
    assert now == before
    kinds = {kind for output in now for kind in output.get("data", ())}
    assert kinds == {"text/plain", "text/html", "image/svg+xml"}
    assert all(output.output_type != "error" for output in now)
