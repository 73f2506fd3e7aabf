"""Instructions of the user's own in an image: where they are, and which bytes they replace."""

from typing import Final

from kinst.targets.values import dataclass

LONGEST: Final = 1 << 16  # bytes of a patch


@dataclass(frozen=True, slots=True)
class Patch:
    """Bytes written over whole instructions of the image as it was built. `original` and `code` have the same
    length."""

    address: int  # link address
    original: bytes
    code: bytes  # padded with nops
    text: str  # WHERE = WHAT, as the user wrote it

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.address + len(self.code)
