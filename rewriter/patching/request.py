"""``WHERE = WHAT`` as the user wrote it -> a place and what is written there, not looked up yet."""

import re
from typing import Final

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_PLACE: Final = re.compile(r"(?P<base>[^\s+]+)\s*(?:\+\s*(?P<offset>0[xX][0-9a-fA-F]+|[0-9]+))?")
_HEX: Final = "hex:"
_FORM: Final = "is not WHERE = ASSEMBLY or WHERE = hex:BYTES, such as 'f+0x10 = nop' or '0x80000568 = hex:0145 8280'"
_ADDRESSES: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """One `--patch`: `offset` bytes after a function or an address; `code` if the bytes are given, else `assembly`."""

    text: str  # blanks and line ends as one blank or a semicolon
    base: str  # the name of a function, or an address in hex
    offset: int
    code: bytes
    assembly: str

    @property
    def address(self) -> int | None:
        """Of the place, where its base is an address."""
        return int(self.base, 16) + self.offset if self.base[:2] in ("0x", "0X") else None

    @property
    def place(self) -> str:
        """The place as a message names it."""
        return f"{self.base}+{self.offset:#x}" if self.offset else self.base


def parse_patch(text: str) -> PatchRequest:
    """Read ``WHERE = WHAT``.

    Raises:
        UsageError: there is no place, nothing to write, or it does not parse.
    """
    where, _, what = (part.strip() for part in text.partition("="))
    found = _PLACE.fullmatch(where)
    what = "; ".join(" ".join(line.split()) for line in what.splitlines() if line.strip())
    if found is None or not what or not what.isprintable() or not where.isprintable():
        raise UsageError(f"--patch {' '.join(text.split())}: {_FORM}")
    code = _code(text, what) if what.startswith(_HEX) else b""
    offset = int(found["offset"] or "0", 16 if (found["offset"] or "")[:2] in ("0x", "0X") else 10)
    request = PatchRequest(f"{where} = {what}", found["base"], offset, code, "" if code else what)
    _check_address(request)
    return request


def _code(text: str, what: str) -> bytes:
    try:
        code = bytes.fromhex(what.removeprefix(_HEX))
    except ValueError:
        code = b""
    if not code:
        raise UsageError(
            f"--patch {' '.join(text.split())}: {_HEX} takes bytes, two hex digits each, in the order of memory"
        )
    return code


def _check_address(request: PatchRequest) -> None:
    try:
        address = request.address
    except ValueError:
        raise UsageError(f"--patch {request.text}: {request.base} is no address") from None
    if (request.offset if address is None else address) >= _ADDRESSES:
        raise UsageError(f"--patch {request.text}: {request.place} has more than the 64 bits of an address")
