"""Assembly text of amd64 or arm64 -> bytes. All that uses keystone (which has no RISC-V).

keystone ends its process on some input ("LLVM ERROR: invalid imm12 fixup value"), so what users write is assembled in a
separate process: this file, run as a program that `kinst.rewriter.patching.assembler` starts. A call takes 53 us.
"""

import json
import re
import sys
from functools import cache
from typing import Final

import keystone

from kinst.targets.arch.facts import ArchFacts, Syntax
from kinst.targets.arch.registry import ARCHES, arch_by_name
from kinst.targets.errors import UsageError

# Text in quotes; else a decimal number that is no part of a name, of a real number or of a label.
_DECIMAL: Final = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w.%])([1-9][0-9]*)(?![\w.]|\s*:)""")
PLAIN: Final = "plain"


def assemble(facts: ArchFacts, text: str, address: int = 0, *, is_plain: bool = False) -> bytes:
    """The bytes of `text` (instructions separated by ; or line ends) placed at `address`.

    The syntax of amd64 is AT&T's; if `is_plain` it is Intel's.

    Raises UsageError, with the text, if it does not assemble or the machine has no assembler.
    """
    mode = facts.keystone_plain if is_plain else facts.keystone
    if mode is None:
        known = " and ".join(one.name for one in ARCHES if one.keystone is not None)
        raise UsageError(f"{facts.name}: no assembler; there is one for {known}")
    try:
        code, _ = _engine(mode).asm(_in_hexadecimal(text), address, as_bytes=True)
    except keystone.KsError as error:
        raise UsageError(f"{text!r}: {error}") from error
    if code is None:
        raise UsageError(f"{text!r}: no instruction in it")
    return bytes(code)


def _in_hexadecimal(text: str) -> str:
    """The text with its decimal numbers in base 16, except in quotes.

    keystone 0.9.2 accepts or rejects a decimal number by an uninitialised variable (llvm_ks::AsmLexer::LexDigit, as
    valgrind shows; "Unknown error"): seldom, and never in the same place twice. Other bases are parsed elsewhere.
    """
    return _DECIMAL.sub(lambda found: found[0] if found[1] is None else hex(int(found[1])), text)


@cache
def _engine(mode: Syntax) -> keystone.Ks:
    engine = keystone.Ks(getattr(keystone, mode.arch), sum(getattr(keystone, name) for name in mode.modes))
    if mode.syntax is not None:
        engine.syntax = getattr(keystone, mode.syntax)
    return engine


def _serve(name: str, syntax: str) -> None:
    """Requests on stdin, a line of JSON each: [text, address]; answers on stdout: the bytes in hex, or "!" and why."""
    facts = arch_by_name(name)
    for line in sys.stdin:
        text, address = json.loads(line)
        try:
            answer = assemble(facts, text, address, is_plain=syntax == PLAIN).hex()
        except UsageError as error:
            answer = f"!{error}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
