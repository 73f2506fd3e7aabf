"""``WHERE = WHAT`` as it is typed."""

import pytest

from kinst.rewriter.patching.request import PatchRequest, parse_patch
from kinst.targets.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f = ret", PatchRequest("f = ret", "f", 0, b"", "ret")),
        ("f+0x10=mov eax, 0;ret", PatchRequest("f+0x10 = mov eax, 0;ret", "f", 16, b"", "mov eax, 0;ret")),
        (" f + 16 =\n nop\n\n\tret\n", PatchRequest("f + 16 = nop; ret", "f", 16, b"", "nop; ret")),
        ("0x80 = hex:0100 8280", PatchRequest("0x80 = hex:0100 8280", "0x80", 0, b"\x01\0\x82\x80", "")),
        ("ns::f.cold = b .", PatchRequest("ns::f.cold = b .", "ns::f.cold", 0, b"", "b .")),
    ],
)
def test_a_patch_is_taken_apart(text: str, expected: PatchRequest) -> None:
    assert parse_patch(text) == expected


def test_an_address_has_its_offset() -> None:
    assert parse_patch("0x80000000+0x10 = nop").address == 0x8000_0010
    assert parse_patch("f+0x10 = nop").address is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("f", "is not WHERE = ASSEMBLY or WHERE = hex:BYTES"),
        ("f =", "is not WHERE"),
        ("= ret", "is not WHERE"),
        ("f+x = ret", "is not WHERE"),
        ("f g = ret", "is not WHERE"),
        ("f =\n\n", "is not WHERE"),
        ("f = \x1b[31m", "is not WHERE"),
        ("f = hex:", "takes bytes, two hex digits each"),
        ("f = hex:123", "takes bytes"),
        ("f = hex:xy", "takes bytes"),
        ("0xfg = ret", "0xfg is no address"),
        ("0x10000000000000000 = ret", "more than the 64 bits of an address"),
        ("f+0x10000000000000000 = ret", "more than the 64 bits of an address"),
    ],
)
def test_what_is_none_says_so(text: str, why: str) -> None:
    with pytest.raises(UsageError, match="--patch") as error:
        parse_patch(text)
    assert why in str(error.value) and len(str(error.value).splitlines()) == 1
