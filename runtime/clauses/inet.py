"""Network addresses as text, and numbers in network byte order."""

from typing import Final

from kinst.runtime.trap.faults import Fault, FaultKind

AF_INET: Final = 2
AF_INET6: Final = frozenset({10, 26, 28})  # Linux, illumos, FreeBSD: scripts use their own system's number
_MAPPED: Final = bytes(10) + b"\xff\xff"
_COMPATIBLE: Final = bytes(12)
_NOT_COMPATIBLE: Final = frozenset({bytes(4), b"\0\0\0\1"})  # "::" and "::1"


def swap(value: int, size: int) -> int:
    """htons, ntohl and the like: the low `size` bytes in reverse order, since guests are little-endian."""
    return int.from_bytes((value & (1 << 8 * size) - 1).to_bytes(size, "little"), "big")


def dotted(address: bytes) -> bytes:
    """An IPv4 address: 127.0.0.1."""
    return b"%d.%d.%d.%d" % tuple(address)


def embedded(address: bytes) -> bytes | None:
    """The IPv4 address that an IPv6 address embeds (::ffff:1.2.3.4, ::1.2.3.4); None if it embeds none."""
    if address[:12] == _MAPPED or (address[:12] == _COMPATIBLE and address[12:] not in _NOT_COMPATIBLE):
        return address[12:]
    return None


def colons(address: bytes) -> bytes:
    """An IPv6 address: fe80::214:4fff:fe0b:76c8, ::ffff:1.2.3.4."""
    words = [b"%x" % int.from_bytes(address[at : at + 2], "big") for at in range(0, 16, 2)]
    inner = embedded(address)
    if inner is not None:
        words[6:] = [dotted(inner)]
    first, count = _zeros(address)
    if count == 0 or (inner is not None and first + count > 6):
        return b":".join(words)
    return b":".join(words[:first]) + b"::" + b":".join(words[first + count :])


def _zeros(address: bytes) -> tuple[int, int]:
    """The words that "::" replaces, as first and count: the longest run of zeros. One word is enough, unless it is the
    last.

    Runs are measured in bytes up to the next byte that is not 0, as dtrace_dif_subr() does: of two runs of equally many
    words, the later one wins if the word after it begins with a zero byte. RFC 5952 would take the first.
    """
    begin, first, longest = -1, 0, 1
    for at, byte in enumerate(address):
        if begin < 0:
            if byte == 0 and at % 2 == 0:
                begin = at
        elif byte or at == 15:
            if at - begin > longest:
                first, longest = begin, at - at % 2 - begin
                longest += 2 if byte == 0 and at == 15 else 0
            begin = -1
    return first // 2, longest // 2


def presentation(family: int, address: bytes) -> bytes:
    """inet_ntop(). Raises Fault ILLOP for a family that is neither IPv4 nor IPv6."""
    if family == AF_INET:
        return dotted(address)
    check_family(family)
    return colons(address)


def check_family(family: int) -> int:
    """The bytes of an address of this family. Raises Fault ILLOP for a family that is neither IPv4 nor IPv6."""
    if family == AF_INET:
        return 4
    if family not in AF_INET6:
        raise Fault(FaultKind.ILLOP)
    return 16
