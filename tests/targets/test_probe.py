"""Probe names: DTrace's rules for reading and matching, and one message for each mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinst.targets.errors import ProbeNameError
from kinst.targets.probe import ProbeName, is_glob, matcher, matching, parse_probe_name, parse_probe_names


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("kinst:zfs:f:4", ("kinst", "zfs", "f", "4")),
        ("kinst::f:", ("kinst", "", "f", "")),
        ("f:entry", ("", "", "f", "entry")),
        ("zfs:f:entry", ("", "zfs", "f", "entry")),
        ("vfs_read", ("", "", "", "vfs_read")),
        (":::", ("", "", "", "")),
        ("BEGIN", ("", "", "", "BEGIN")),
        ("kinst::f:0x1c", ("kinst", "", "f", "28")),
        ("kinst::f:0X1C", ("kinst", "", "f", "28")),
        ("kinst::f:007", ("kinst", "", "f", "7")),
        ("kinst::f:entry", ("kinst", "", "f", "entry")),
        ("kinst::f*:[0-9]", ("kinst", "", "f*", "[0-9]")),
        ("fbt::sub_80000568:entry", ("fbt", "", "sub_80000568", "entry")),
        ("k*t::f:", ("k*t", "", "f", "")),
        ("fbt::_ZN4core3fmt9Formatter3pad17h0123456789abcdefE:return",
         ("fbt", "", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "return")),
    ],
)  # fmt: skip
def test_fields_are_read_from_the_right(text: str, fields: tuple[str, str, str, str]) -> None:
    name = parse_probe_name(text)
    assert (name.provider, name.module, name.function, name.name) == fields
    assert parse_probe_name(str(name)) == name


def test_an_address_or_an_offset_is_a_number() -> None:
    name = parse_probe_name("kinst::0xffffffff81000010:0x10")
    assert (name.address, name.offset) == (0xFFFFFFFF81000010, 16)
    assert parse_probe_name("kinst::f:").offset is None
    assert parse_probe_name("kinst::12:").address is None
    assert parse_probe_name("kinst::0xyz:").address is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty probe name"),
        ("a:b:c:d:e", "5 fields, a probe name has four"),
        ("kinst::f:x1", "bad offset 'x1'"),
        ("kinst::f:-1", "bad offset '-1'"),
        ("kinst::f:0x", "bad offset '0x'"),
        ("kinst::f:1.5", "bad offset '1.5'"),
        ("kinst::f:99999999999999999999", "no function is so long"),
        ("fbtt::f:entry", "no provider 'fbtt': did you mean fbt?"),
        ("nfs::f:entry", "no provider 'nfs': there are dtrace, fbt, kinst"),
        ("x*::f:entry", "no provider 'x*'"),
        ("fbt::[a:entry", "in the function field: [ without ]"),
        ("fbt::[:entry", "in the function field: [ without ]"),
        ("fbt::[!:entry", "in the function field: [ without ]"),
        ("fbt::f\\:entry", "in the function field: a backslash at the end"),
        ("fbt:: f:entry", "no blanks"),
        ("fbt::f\n:entry", "no blanks"),
        ("fbt::f\0:entry", "control characters"),
        ("x" * 5000, "5000 characters are too long"),
    ],
)
def test_each_mistake_has_its_message(text: str, message: str) -> None:
    with pytest.raises(ProbeNameError) as caught:
        parse_probe_name(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_names_with_commas_between_them() -> None:
    names = parse_probe_names("fbt::[a,b]x:entry, kinst::f:3")
    assert [str(name) for name in names] == ["fbt::[a,b]x:entry", "kinst::f:3"]
    with pytest.raises(ProbeNameError, match="empty"):
        parse_probe_names("fbt::f:entry,")


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("", ["", "anything"], []),
        ("f", ["f"], ["F", "ff", ""]),
        ("f.o", ["f.o"], ["foo"]),
        ("*", ["", "a", "a*b"], []),
        ("**", ["", "abc"], []),
        ("vfs_*", ["vfs_", "vfs_read"], ["xvfs_read", "vfs"]),
        ("*read", ["read", "vfs_read"], ["reads", "rea"]),
        ("a*b*c", ["abc", "aXbXbYc"], ["acb", "ab", "abcd"]),
        ("*a?c*", ["abc", "xxaacxx"], ["ac"]),
        ("f?o", ["foo", "f*o"], ["fo", "fooo"]),
        ("f[a-c]o", ["fao", "fco"], ["fdo", "fo", "f-o"]),
        ("f[!a-c]o", ["fdo", "f-o"], ["fao", "fo"]),
        ("f[abc-]", ["fa", "f-"], ["fd"]),
        ("f[]x]", ["f]", "fx"], ["fy"]),
        ("f[!]x]", ["fy"], ["f]", "fx"]),
        ("f[\\]]", ["f]"], ["f\\"]),
        ("f[\\a-\\c]", ["fb"], ["fd"]),
        ("f[z-a]", [], ["fz", "fa", "f-"]),
        ("f[!z-a]", ["fz"], ["f"]),
        ("f[^a]", ["f^", "fa"], ["fb"]),
        ("f\\*", ["f*"], ["fo", "f\\*"]),
        ("\\f\\?", ["f?"], ["fo"]),
        ("f\\\\", ["f\\"], ["f"]),
        ("a.*+(b)|$^{2}?", ["a.Q+(b)|$^{2}x"], ["aQ+(b)|$^{2}x"]),
    ],
)
def test_matching_is_that_of_dtrace(glob: str, yes: list[str], no: list[str]) -> None:
    accepts = matcher(glob)
    assert [accepts(text) for text in yes] == [True] * len(yes)
    assert [accepts(text) for text in no] == [False] * len(no)
    assert matching(glob, yes + no).tolist() == [True] * len(yes) + [False] * len(no)


def reference(glob: str, text: str) -> bool:
    """Stars and question marks by trying everything: slow, and obviously right."""
    if not glob:
        return not text
    if glob[0] == "*":
        return any(reference(glob[1:], text[skip:]) for skip in range(len(text) + 1))
    return bool(text) and glob[0] in ("?", text[0]) and reference(glob[1:], text[1:])


@given(st.text("ab*?", min_size=1, max_size=8), st.text("ab", max_size=8))
def test_stars_against_trying_everything(glob: str, text: str) -> None:
    assert matcher(glob)(text) == reference(glob, text)


def test_a_glob_of_many_stars_takes_no_time() -> None:
    assert not matcher("a*" * 100 + "b")("a" * 20_000)  # trying everything would never end


def test_a_module_matches_with_and_without_its_ending() -> None:
    for text in ("kinst:zfs:f:", "kinst:zfs.ko:f:", "kinst:z*:f:", "kinst:*.ko:f:", "kinst::f:"):
        name = parse_probe_name(text)
        assert name.matches_module("zfs")
        assert name.matches_module("zfs.ko")
    assert not parse_probe_name("kinst:zf:f:").matches_module("zfs.ko")


def test_four_empty_fields_are_every_probe_that_has_a_function() -> None:
    everything = parse_probe_name(":::")
    assert everything.matches("fbt", "kernel", "f", "entry")
    assert not everything.matches("dtrace", "", "", "BEGIN")
    assert parse_probe_name("BEGIN").matches("dtrace", "", "", "BEGIN")
    assert not parse_probe_name("fbt:::").matches("kinst", "", "f", "3")


def test_what_is_a_pattern() -> None:
    assert [is_glob(text) for text in ("f", "f*", "f?", "[f]", "\\f", "f]", "")] == [
        False, True, True, True, True, False, False,
    ]  # fmt: skip
    assert str(ProbeName("", "", "", "")) == ":::"
