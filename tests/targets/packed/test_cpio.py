"""Archives of files that were drawn, and what the reader finds in them."""

import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.targets.errors import ImageError
from kinst.targets.packed.cpio import FileSystem, file_system
from tests.writers.cpio import DIRECTORY, FILE, LINK, Entry, archive

NAMES = st.lists(st.text("abc.+-é", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)
KINDS = st.sampled_from([FILE, LINK, DIRECTORY])
ENTRIES = st.lists(st.tuples(NAMES, KINDS, st.binary(min_size=1, max_size=9)), max_size=6)
PACKERS = st.sampled_from([bytes, gzip.compress, lzma.compress])


def _plain(name: str) -> str:
    return "/".join(part for part in name.split("/") if part != ".")


@given(ENTRIES, ENTRIES, PACKERS, st.integers(0, 9))
def test_the_last_file_of_a_name_counts(first: list, second: list, pack, zeros: int) -> None:  # type: ignore[type-arg, no-untyped-def]
    """Over two archives, the second one compressed or not."""
    parts = [archive([Entry(name, mode, content) for name, mode, content in part]) for part in (first, second)]
    found = file_system(parts[0] + bytes(4 * zeros) + pack(parts[1]))
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for name, mode, content in (*first, *second):
        files.pop(_plain(name), None)
        links.pop(_plain(name), None)
        if mode == FILE:
            files[_plain(name)] = content
        elif mode == LINK:
            links[_plain(name)] = content.partition(b"\0")[0].decode(errors="surrogateescape")
    assert {name: bytes(content) for name, content in found.files.items()} == files
    assert found.links == links


def test_links_are_followed_as_the_kernel_does() -> None:
    links = {"bin": "usr/bin", "usr/bin/ls": "busybox", "usr/bin/up": "../lib/x", "abs": "/bin/ls", "a": "b", "b": "a"}
    known = FileSystem({"usr/bin/busybox": memoryview(b"ELF")}, links)
    paths = ("/bin/ls", "/abs", "/bin/up", "/bin/../bin/./ls", "/none/x", "/../bin/busybox")
    busybox = "/usr/bin/busybox"
    assert [known.resolved(path) for path in paths] == [busybox, busybox, "/usr/lib/x", busybox, "/none/x", busybox]
    found = known.content("/bin/ls")
    assert found is not None
    assert bytes(found) == b"ELF"
    assert known.content("/bin") is None
    assert known.resolved("/a") in ("/a", "/b")  # a circle


def test_names_of_one_inode_are_one_file() -> None:
    """The last of them has the content (buffer-format.rst)."""
    data = bytearray(archive([Entry("a", FILE), Entry("b", FILE, b"content")]))
    second = data.index(b"070701", 6)
    for at in (0, second):
        data[at + 6 : at + 14] = b"00000007"  # c_ino
        data[at + 6 + 4 * 8 : at + 6 + 5 * 8] = b"00000002"  # c_nlink
    assert {name: bytes(content) for name, content in file_system(bytes(data)).files.items()} == dict.fromkeys(
        "ab", b"content"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF", "no cpio archive"),
        (archive([Entry("a", FILE, b"abcdefgh")])[:115], "longer than the archive"),
        (archive([Entry("a", FILE)]).replace(b"070701", b"07070x", 1), "no cpio header at byte 0"),
        (archive([Entry("a", FILE)]) + b"tail", "no cpio archive at byte"),
        (gzip.compress(gzip.compress(b"", mtime=0), mtime=0), "compressed more than once"),
        (b"070701" + b"0" * 104, "a name of 0 bytes"),
    ],
)
def test_what_is_none_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        file_system(data)
