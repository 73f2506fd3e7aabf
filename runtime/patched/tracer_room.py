"""Code at the start of a function -> whether it is there for hardware and tracers alone: a landing pad, and room for a
call."""

from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.arch.registry import dissector
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.instruction import Flow, Reason

_SPARE: Final = 32  # zeros behind the code, which the dissector may look at


def is_tracer_room(arch: ArchFacts, code: bytes) -> bool:
    """Whether control that comes to the first of these bytes also comes behind the last, and nothing can fault."""
    room = arch.linux.tracer_room
    if isinstance(room, int) and len(code) >= room:
        code = code[: 1 - room] + bytes(room - 1)  # whoever is called
    return _is_room(arch.name, code)


@cache
def _is_room(name: str, code: bytes) -> bool:
    arch = arch_by_name(name)
    text = np.frombuffer(code + bytes(_SPARE), np.uint8)
    found = dissector(arch).dissect(text, 0x1000, np.array([[0, len(code)]], np.int64))
    if not len(found) or int(found.address[-1]) + int(found.size[-1]) != 0x1000 + len(code):
        return False
    for address, reason, flow in zip(found.address.tolist(), found.reason.tolist(), found.flow.tolist(), strict=True):
        is_nop = code[address - 0x1000 :].startswith(arch.nops)
        if not (is_nop or reason == Reason.LANDING_PAD or flow == Flow.CALL):
            return False
    return True
