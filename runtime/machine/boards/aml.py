"""Names and values -> AML, the byte code of ACPI's tables (ACPI Specification 6.5, chapter 20.2)."""

from typing import Final

_NAME, _SCOPE, _BUFFER, _PACKAGE, _DEVICE = b"\x08", b"\x10", b"\x11", b"\x12", b"\x5b\x82"
_PREFIXES: Final = ((1, b"\x0a"), (2, b"\x0b"), (4, b"\x0c"))  # of integers, by their size


def integer(value: int) -> bytes:
    """An integer of up to 32 bits, as short as it can be."""
    if value < 2:
        return bytes([value])
    return next(prefix + value.to_bytes(size, "little") for size, prefix in _PREFIXES if not value >> 8 * size)


def named(name: bytes, value: bytes) -> bytes:
    """Name (name, value)."""
    return _NAME + name + value


def package(*elements: bytes) -> bytes:
    """Package () { elements }."""
    return _PACKAGE + _sized(bytes([len(elements)]) + b"".join(elements))


def buffer(content: bytes) -> bytes:
    """Buffer () { content }."""
    return _BUFFER + _sized(integer(len(content)) + content)


def scope(name: bytes, content: bytes) -> bytes:
    """Scope (name) { content }."""
    return _SCOPE + _sized(name + content)


def device(name: bytes, content: bytes) -> bytes:
    """Device (name) { content }."""
    return _DEVICE + _sized(name + content)


def _sized(content: bytes) -> bytes:
    """With its length (20.2.4), which counts itself: in one byte up to 63, or 4 bits and as many bytes as bits 7:6
    say."""
    if len(content) < 63:
        return bytes([len(content) + 1]) + content
    size = next(size for size in (2, 3) if len(content) + size < 1 << 8 * size - 4)
    length = len(content) + size
    return bytes([size - 1 << 6 | length & 15]) + (length >> 4).to_bytes(size - 1, "little") + content
