"""Ctrl-A and the key behind it, in one piece of input or in two."""

import pytest

from kinst.runtime.input.escape_keys import Command, EscapeKeys


@pytest.mark.parametrize(
    ("keys", "typed", "commands"),
    [
        (b"ls\r\x03", b"ls\r\x03", []),
        (b"a\x01xb", b"ab", [Command.END]),
        (b"\x01h\x01h", b"", [Command.HELP, Command.HELP]),
        (b"\x01\x01\x01a\x01qx", b"\x01\x01x", []),
    ],
)
def test_what_goes_to_the_guest_and_what_is_ours(keys: bytes, typed: bytes, commands: list[Command]) -> None:
    assert EscapeKeys().split(keys) == (typed, commands)
    one_by_one = EscapeKeys()
    pieces = [one_by_one.split(bytes([key])) for key in keys]
    assert b"".join(piece for piece, _ in pieces) == typed
    assert [command for _, found in pieces for command in found] == commands
