"""Options: what each kind of value may be, and what is refused."""

from pathlib import Path

import pytest

from kinst.runtime.dlang.options import OptionError, Options
from tests.commands.all_commands import run


def test_a_word_of_denial_goes_back_to_the_default() -> None:
    options = given("aggsortkeypos", "3")
    options.set("aggsortkeypos", "unset")
    assert (options.is_set("aggsortkeypos"), options.number("aggsortkeypos")) == (False, 0)


def test_strings_have_a_largest_size() -> None:
    with pytest.raises(OptionError, match="Value too large for defined data type"):
        given("strsize", "4g")


def given(name: str, value: str | None) -> Options:
    options = Options()
    options.set(name, value)
    return options


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("bufsize", "4k", 4096),
        ("bufsize", "0x10", 16),
        ("aggsize", "2M", 2 << 20),
        ("dynvarsize", "1g", 1 << 30),
        ("strsize", "512", 512),
        ("switchrate", "10", 10),
        ("switchrate", "10hz", 10**8),
        ("switchrate", "0hz", 0),
        ("aggrate", "2sec", 2 * 10**9),
        ("statusrate", "1day", 86400 * 10**9),
        ("cleanrate", "3us", 3000),
        ("quiet", None, 1),
        ("quiet", "no", 0),
        ("quiet", "true", 1),
        ("quiet", "2", 2),
        ("quiet", "TRUE", 1),
        ("quiet", "Enabled", 1),
        ("quiet", "OFF", 0),
        ("quiet", "", 0),
        ("nspec", "Unset", 1),
        ("stackframes", "No", 20),
        ("stackframes", "Yes", 1),
        ("strsize", "4294967295", 0xFFFF_FFFF),
        ("destructive", "disabled", 0),
        ("nspec", "010", 8),
        ("errtags", None, 1),
    ],
)
def test_values(name: str, value: str | None, number: int) -> None:
    assert given(name, value).number(name) == number


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bufsize", "4q"),
        ("bufsize", "-1"),
        ("bufsize", ""),
        ("bufsize", "18446744073709551616"),
        ("switchrate", "10 s"),
        ("switchrate", "1fortnight"),
        ("bufpolicy", "drop"),
        ("bufresize", None),
        ("quiet", "maybe"),
        ("nspec", "08"),
        ("errtags", "7"),
    ],
)
def test_values_that_are_refused(name: str, value: str | None) -> None:
    with pytest.raises(OptionError, match="Invalid value for specified option"):
        given(name, value)


def test_unknown_names_and_the_wrong_time() -> None:
    options = Options()
    with pytest.raises(OptionError, match="Invalid option name") as error:
        options.set("nosuch", "1")
    assert error.value.tag == "D_PRAGMA_OPTSET"
    options.set_while_running("quiet", None)
    with pytest.raises(OptionError, match="tracing is active"):
        options.set_while_running("bufsize", "4k")


def test_defaults_and_words() -> None:
    options = Options()
    assert options.number("strsize") == 256
    assert options.number("stackframes") == 20
    assert options.text("bufpolicy") == "switch"
    assert not options.is_set("bufsize")
    options.set("bufpolicy", "ring")
    assert options.text("bufpolicy") == "ring"
    for name, value in (("define", "A=1"), ("undef", "B"), ("incdir", "/x")):
        options.set(name, value)
    assert options.definitions == [("-D", "A=1"), ("-U", "B"), ("-I", "/x")]


@pytest.mark.parametrize("first", ["cpp\n#pragma D option cpppath={0}/host", "cpppath={0}/host\n#pragma D option cpp"])
def test_a_script_cannot_have_the_next_one_start_a_command(first: str, tmp_path: Path) -> None:
    host, trap = tmp_path / "host", tmp_path / "trap"
    host.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    host.chmod(0o755)
    (tmp_path / "one.d").write_text(f"#pragma D option {first.format(tmp_path)}\nBEGIN {{ exit(0); }}\n")
    (tmp_path / "two.d").write_text("BEGIN { exit(0); }\n")
    result = run("kinst-run", "-s", tmp_path / "one.d", "-s", tmp_path / "two.d")
    assert (result.exit_code, trap.exists()) == (1, False)
    assert "it starts a command: give -C or -x on the command line" in result.stderr
    as_the_user = run("kinst-run", "-x", f"cpppath={host}", "-C", "-s", tmp_path / "two.d")
    assert (as_the_user.exit_code, trap.exists()) == (0, True), as_the_user.stderr
