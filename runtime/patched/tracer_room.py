"""Code at the start of a function -> whether it serves hardware and tracers only: a landing pad, and the nops or the
call of a function tracer."""

from functools import cache
from typing import Final

import numpy as np

from kinst.rewriter.arch.registry import dissector
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.arch.registry import arch_by_name
from kinst.targets.instruction import Flow, Reason

_SPARE: Final = 32  # zeros after the code, which the dissector may read


def is_tracer_room(arch: ArchFacts, code: bytes) -> bool:
    """Whether control that reaches the first of these bytes also gets past the last, and nothing can fault."""
    room = arch.linux.tracer_call
    if isinstance(room, int) and len(code) >= room:
        code = code[: 1 - room] + bytes(room - 1)  # the target of a call makes no difference
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
