"""The padding in front of a kernel's functions, which has symbols as functions have."""

from pathlib import Path

import pytest

from kinst.rewriter.program import functions_of
from kinst.targets.image import open_image
from tests.images import real_image
from tests.rewriter.programs import STEP, TEXT, small
from tests.writers.elf import Symbol

NOPS = "; ".join(["nop"] * STEP)
SHORT = "; ".join(["nop"] * (STEP - 1))


@pytest.mark.parametrize(
    ("first", "code", "left"),
    [
        ("__pfx_vfs_read", NOPS, ("start", "vfs_read", "last")),
        ("__pfx_vfs_write", NOPS, ("start", "__pfx_vfs_write", "vfs_read", "last")),  # of another function
        ("pfx_vfs_read", NOPS, ("start", "pfx_vfs_read", "vfs_read", "last")),
        ("__pfx_vfs_read", f"int3; {SHORT}", ("start", "__pfx_vfs_read", "vfs_read", "last")),  # something is there
        ("__pfx_vfs_read", SHORT, ("start", "__pfx_vfs_read", "vfs_read", "last")),  # it ends elsewhere
    ],
)
def test_only_padding_that_is_named_so_is_no_function(
    first: str, code: str, left: tuple[str, ...], tmp_path: Path
) -> None:
    functions = {"start": "ret", first: code, "vfs_read": "nop; ret", "last": "ret"}
    found = functions_of(open_image(small(functions=functions).write(tmp_path)))
    assert found.names == left
    assert len(found.address) == len(found.size) == len(found.evidence) == len(found.names)


def test_names_of_one_place_stay_together(tmp_path: Path) -> None:
    """Rows behind what is left out have other numbers."""
    alias = Symbol("ksys_read", TEXT + STEP, 2)
    image = small(functions={"__pfx_vfs_read": NOPS, "vfs_read": "nop; ret"}, extra=(alias,))
    found = functions_of(open_image(image.write(tmp_path)))
    assert len(found) == 1
    assert {*found.names, *found.aliases[0]} == {"vfs_read", "ksys_read"}


@pytest.mark.long
def test_linux_has_none() -> None:
    image = open_image(real_image("linux-6.12-amd64"))
    found = functions_of(image)
    assert not [name for name in found.names if name.startswith("__pfx_")]
    assert found.row_at(image.symbols.address_of("vfs_read") or 0) is not None
