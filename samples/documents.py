"""Where the documents of this installation are: in its checkout, or where its wheel has put them."""

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

from kinst.targets.errors import KinstError

_PROJECT: Final = "kinst-rewrite"
_FIRST: Final = "README.md"
_CHECKOUT: Final = Path(__file__).resolve().parents[1]


def documents_folder() -> Path:
    """The folder that has README.md, and docs. Raises KinstError if it was not installed."""
    if (_CHECKOUT / _FIRST).is_file() and (_CHECKOUT / "docs").is_dir():
        return _CHECKOUT
    try:
        installed = files(_PROJECT) or ()
    except PackageNotFoundError:
        installed = ()
    for file in installed:
        if file.parts[-4:] == ("share", "doc", _PROJECT, _FIRST):
            return Path(str(file.locate())).resolve().parent
    raise KinstError("the documents are not installed here: they come with the wheel, below share/doc/kinst-rewrite")
