"""What fuzzing has found, as small as it became: a kind, what was wrong, the input."""

from typing import Any, Final

from tests.fuzz.bytes_changed import Damage

_CODE: Final = bytes.fromhex("fd7bbfa9fd030091fd7bc1a8c0035fd6")
FINDINGS: Final[tuple[tuple[str, str, Any], ...]] = (
    (
        "traffic",
        "a count of the PC's timer in BCD whose digits are not decimal",
        ("pc-amd64", bytes.fromhex("00003105a003000000000a0500000000000f05000000")),
    ),
    ("traffic", "a word to the last of the timer's ports", ("pc-amd64", bytes.fromhex("0081ff05a00300020a05000003"))),
    ("headers", "an index of section names that is beyond the sections", Damage(0, ((34, 8, 0),))),
    ("headers", "sections that have names, and no table of names", Damage(0, ((61, 2, 0),))),
    ("headers", "program headers that lie over the ELF header, one of them spare", Damage(1, ((2254, 2, 2048),))),
    ("kallsyms", "names that go on behind the end of the kernel", Damage(2, ((483894, 2, 0),))),
    ("btf", "types of seven bytes: less than a record", Damage(0, ((12, 2, 7),))),
    ("btf", "an integer of no bytes", Damage(0, ((254678, 1, 0),))),
    ("btf", "an enumeration of 2 GB", Damage(0, ((160, 4, 0x7FFF_FFFF),))),
    ("manifests", "functions of any size, which took longer than anyone waits", Damage(1, ((40003, 8, 1091),))),
    ("hex-lines", "S5 lines with data, which they lost", (False, [(1, 0, _CODE), (5, 0, _CODE), (5, 0, _CODE)], "\n")),
    (
        "hex-lines",
        "a line in a segment: its sum is of the address in it",
        (True, [(2, 0, b"\0\1"), (0, 0, _CODE)], "\n"),
    ),
)
