"""Assembly text of amd64 or arm64 -> bytes. All that uses keystone (which has no RISC-V).

53 microseconds a call: for tests and where code of ours is easier to read as text, never for code in bulk.
"""

from functools import cache

import keystone

from kinst.targets.arch.facts import ArchFacts, Syntax
from kinst.targets.arch.registry import ARCHES
from kinst.targets.errors import UsageError


def assemble(facts: ArchFacts, text: str, address: int = 0) -> bytes:
    """The bytes of `text` (instructions separated by ; or line ends; AT&T syntax on amd64) placed at `address`.

    Raises UsageError, with the text, if it does not assemble or the machine has no assembler.
    """
    if facts.keystone is None:
        known = " and ".join(one.name for one in ARCHES if one.keystone is not None)
        raise UsageError(f"{facts.name}: no assembler; there is one for {known}")
    try:
        code, _ = _engine(facts.keystone).asm(text, address, as_bytes=True)
    except keystone.KsError as error:
        raise UsageError(f"{text!r}: {error}") from error
    if code is None:
        raise UsageError(f"{text!r}: no instruction in it")
    return bytes(code)


@cache
def _engine(mode: Syntax) -> keystone.Ks:
    engine = keystone.Ks(getattr(keystone, mode.arch), sum(getattr(keystone, name) for name in mode.modes))
    if mode.syntax is not None:
        engine.syntax = getattr(keystone, mode.syntax)
    return engine
