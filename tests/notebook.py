"""samples/notebook.ipynb: executed anew, with its outputs (`poe notebook` writes them into the file)."""

import argparse
import os
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

ROOT: Final = Path(__file__).parents[1]
NOTEBOOK: Final = ROOT / "samples" / "notebook.ipynb"
_PATIENCE: Final = 300  # seconds for a cell


def read() -> Any:
    """The notebook as it is in the repository."""
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def executed() -> Any:
    """The notebook, executed from its first cell to its last in a process of its own. Raises CellExecutionError."""
    notebook = read()
    found = {"PYTHONPATH": f"{ROOT / '.typing'}:{ROOT}", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    client = NotebookClient(
        notebook, timeout=_PATIENCE, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    environment = os.environ | found
    environment.pop("PYTEST_CURRENT_TEST", None)  # with it, ipykernel gives a kernel no files for its output
    client.execute(env=environment)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it was
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return notebook


if __name__ == "__main__":
    argparse.ArgumentParser(prog="poe notebook", description=(__doc__ or "").partition("\n")[0]).parse_args()
    nbformat.write(executed(), NOTEBOOK)  # type: ignore[no-untyped-call]
