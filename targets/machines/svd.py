"""CMSIS-SVD, in which vendors of chips describe registers (XML) -> their names, addresses and sizes.

Read are names and places, also those of arrays and of what derives from something else. A file may be hostile: it has
no document type, and so no entities, and all of it is bounded.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ParseError, fromstring

from kinst.targets.errors import UsageError
from kinst.targets.values import dataclass

_LARGEST: Final = 1 << 24  # bytes of a file
_MOST: Final = 1 << 16  # registers
_DEPTH: Final = 8  # clusters in each other
_MOST_SHOWN: Final = 40
_LONGEST_NAME: Final = 64
_NAME: Final = re.compile(r"[^A-Za-z0-9_]+")
_NUMBER: Final = re.compile(r"\+?(?:(0x[0-9a-f]{1,16})|(?:#|0b)([01]{1,64})|(\d{1,20}))", re.IGNORECASE)
_BITS: Final = (8, 16, 32, 64)
_DEFAULT_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class SvdRegister:
    """One register, at a physical address; `size` in bytes."""

    peripheral: str
    name: str
    address: int
    size: int


def read_svd(path: Path) -> list[SvdRegister]:
    """The registers of a file, by address.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    root = _root(path)
    try:
        found = list(_Reader().registers(root))
    except _Wrong as error:
        raise UsageError(f"{path}: {error}") from None
    return sorted(found, key=lambda one: (one.address, one.name))


class _Wrong(ValueError):
    """What is wrong in a file."""


def _root(path: Path) -> Element:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'is no UTF-8 text'}") from None
    if len(content) > _LARGEST:
        raise UsageError(f"{path}: is larger than {_LARGEST >> 20} MiB")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UsageError(f"{path}: has a document type, which no SVD file needs")
    try:
        root = fromstring(re.sub(r"^\s*<\?xml.*?\?>", "", text, count=1, flags=re.DOTALL))  # else it may name another
    except (ParseError, ValueError) as error:
        raise UsageError(f"{path}: is no XML: {error}") from None
    if root.tag != "device":
        raise UsageError(f"{path}: is no SVD file: it begins with <{root.tag[:_MOST_SHOWN]}> and not with <device>")
    return root


class _Reader:
    """What reads one file, and no more of it than is allowed."""

    def __init__(self) -> None:
        self._left = _MOST

    def registers(self, root: Element) -> Iterator[SvdRegister]:
        """All registers. Raises _Wrong."""
        peripherals = root.findall("peripherals/peripheral")
        by_name = {_text(one, "name"): one for one in peripherals}
        bits = _size(root, _DEFAULT_BITS)
        for one in peripherals:
            base = by_name.get(one.get("derivedFrom") or "", one)
            content = one.find("registers")
            content = base.find("registers") if content is None else content
            width = _size(one, _size(base, bits))
            for name, start in self._array(one, _number(one, "baseAddress")):
                for register, address, size in self._inside(content, start, width, "", 0):
                    yield SvdRegister(name, register, address, size)

    def _inside(
        self, group: Element | None, start: int, bits: int, prefix: str, depth: int
    ) -> Iterator[tuple[str, int, int]]:
        """Name, address and size in bytes of the registers in a group and in its clusters."""
        if depth > _DEPTH:
            raise _Wrong(f"more than {_DEPTH} clusters in each other")
        for one in group if group is not None else ():
            if one.tag not in ("register", "cluster"):
                continue
            source = _origin(group, one)
            width = _size(one, _size(source, bits))
            for name, address in self._array(one, start + _number(one, "addressOffset", source)):
                name = f"{prefix}_{name}" if prefix else name
                if one.tag == "cluster":
                    content = source if one.find("register") is None and one.find("cluster") is None else one
                    yield from self._inside(content, address, width, name, depth + 1)
                elif width in _BITS:
                    yield name, address, width // 8

    def _array(self, one: Element, start: int) -> Iterator[tuple[str, int]]:
        """The names and addresses of what may be an array."""
        name = _text(one, "name")
        count = 1 if one.find("dim") is None else _number(one, "dim")
        self._left -= count
        if self._left < 0:
            raise _Wrong(f"has more than {_MOST} registers")
        if one.find("dim") is None:
            yield _cleaned(name), start
            return
        step, labels = _number(one, "dimIncrement"), _labels(_text(one, "dimIndex", ""), count)
        for at in range(count):
            yield _cleaned(name.replace("[%s]", str(at)).replace("%s", labels[at])), start + at * step


def _cleaned(name: str) -> str:
    """The name without what a probe's name cannot have."""
    return _NAME.sub("_", name).strip("_")[:_LONGEST_NAME] or "_"


def _origin(group: Element | None, one: Element) -> Element:
    """What a register or a cluster derives from, in the same group; itself if from nothing."""
    name = one.get("derivedFrom")
    same = group.findall(one.tag) if name and group is not None else ()
    return next((other for other in same if other.findtext("name", "").strip() == name), one)


def _labels(text: str, count: int) -> list[str]:
    """What stands for %s: `A,B,C`, `3-6`, or numbers from 0 on."""
    labels = [part.strip() for part in text.split(",")] if text else []
    return labels if len(labels) == count else _range(text, count)


def _range(text: str, count: int) -> list[str]:
    first = re.match(r"\s*(\d{1,9})\s*-", text)
    letter = re.match(r"\s*([A-Z])\s*-\s*([A-Z])\s*$", text)
    if letter is not None and ord(letter[2]) - ord(letter[1]) + 1 == count:
        return [chr(ord(letter[1]) + at) for at in range(count)]
    start = int(first[1]) if first is not None else 0
    return [str(start + at) for at in range(count)]


def _text(one: Element, tag: str, default: str | None = None) -> str:
    found = one.findtext(tag, default)
    if found is None:
        raise _Wrong(f"a <{one.tag[:_MOST_SHOWN]}> lacks <{tag}>")
    return found.strip()


def _number(one: Element, tag: str, source: Element | None = None) -> int:
    text = _text(one if source is None or one.find(tag) is not None else source, tag)
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise _Wrong(f"<{tag}>: {text[:_MOST_SHOWN]!r} is no number")
    hexadecimal, binary, decimal = found.groups()
    return int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(decimal)


def _size(one: Element, default: int) -> int:
    """The bits of its registers."""
    return default if one.find("size") is None else _number(one, "size")
