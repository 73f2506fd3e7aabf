"""Assembly text of amd64 or arm64 -> bytes. All that uses keystone (which has no RISC-V).

53 microseconds a call: for tests and where code of ours is easier to read as text, never for code in bulk.
"""

from functools import cache

import keystone

from kinst.targets.arch.facts import ArchFacts
from kinst.targets.errors import UsageError

_MODES = {
    "amd64": (keystone.KS_ARCH_X86, keystone.KS_MODE_64, keystone.KS_OPT_SYNTAX_ATT),
    "arm64": (keystone.KS_ARCH_ARM64, keystone.KS_MODE_LITTLE_ENDIAN, None),
}


def assemble(facts: ArchFacts, text: str, address: int = 0) -> bytes:
    """The bytes of `text` (instructions separated by ; or line ends; AT&T syntax on amd64) placed at `address`.

    Raises UsageError, with the text, if it does not assemble or the machine has no assembler.
    """
    if facts.name not in _MODES:
        raise UsageError(f"{facts.name}: no assembler; there is one for {' and '.join(_MODES)}")
    try:
        code, _ = _engine(facts.name).asm(text, address, as_bytes=True)
    except keystone.KsError as error:
        raise UsageError(f"{text!r}: {error}") from error
    if code is None:
        raise UsageError(f"{text!r}: no instruction in it")
    return bytes(code)


@cache
def _engine(name: str) -> keystone.Ks:
    arch, mode, syntax = _MODES[name]
    engine = keystone.Ks(arch, mode)
    if syntax is not None:
        engine.syntax = syntax
    return engine
