"""What is known of machine instructions: columns of arrays, one row an instruction, for any machine.

An instruction is classified once, by the dissector of its machine (`kinst.rewriter.arch`). Everything later (plan,
trampolines, emulation) acts on the stored kind and never decodes the bits again.
"""

from dataclasses import fields
from enum import IntEnum, unique
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.targets.values import dataclass

KEPT: Final = 16  # bytes that are reserved for an instruction: no machine's is longer
# Masks of the two words of these bytes that an instruction fills, by its size.
KEPT_BYTES: Final = np.frombuffer(
    b"".join((b"\xff" * size).ljust(KEPT, b"\0") for size in range(KEPT + 1)), "<u8"
).reshape(-1, 2)


class Verdict(IntEnum):
    """How a displaced instruction is run."""

    COPY = 0  # runs in its trampoline, as it is or with its displacement re-encoded
    EMULATE = 1  # its effect is computed: it depends on its own address, or leaves the trampoline for good
    REFUSE = 2  # cannot be probed; `Reason` says why
    DEFER = 3  # the guest writes here itself, as `Reason` says: known only when it runs


class Flow(IntEnum):
    """Where control goes after the instruction. Direct flows have a `target`."""

    NEXT = 0
    JUMP = 1
    BRANCH = 2  # conditional: falls through too
    CALL = 3
    INDIRECT_JUMP = 4
    INDIRECT_CALL = 5
    RETURN = 6
    STOP = 7  # never falls through and has no known destination: ud2, udf, eret, iret, mret, hlt-loops


@unique
class Reason(IntEnum):
    """Why an instruction or a function is refused, or deferred. Columns have the number, and no file does; JSON has the
    name in small letters."""

    NONE = 0
    UNDECODABLE = 1
    BREAKPOINT = 2
    LANDING_PAD = 3
    EXCLUSIVE = 4
    PRIVILEGED_FLOW = 5
    INTERRUPT_FLAG = 6
    INTERRUPT_SHADOW = 7
    SYSTEM_CALL = 8
    DATA = 9
    PATCHED_AT_BOOT = 10
    RELOCATED = 11
    OUT_OF_REACH = 12
    EXCLUDED_FUNCTION = 13
    TRAP_PATH = 14
    NO_PROLOGUE = 15
    TRANSLATION = 17
    UNSUPPORTED = 18
    PADDING = 19
    AUTHENTICATED = 20
    UNSEEN_TAIL_CALL = 21
    OTHER_MODE = 22
    RECORDED = 23
    NO_NOP = 24
    NO_BOUNDARY = 25
    NO_FUNCTION = 26
    STATIC_KEY = 27
    STATIC_CALL = 28
    TRACER_CALL = 29
    THUNK = 30
    REPLACEMENT = 31
    RETURN_THUNK = 32
    LOOP_HEAD = 33
    RUNTIME_CONSTANT = 34
    UNREACHED = 35
    UNVOUCHED = 36
    SEQUENCE = 37

    @property
    def text(self) -> str:
        """The reason in words, to follow "refused: " or "deferred: ". Where many are counted, what is before its first
        colon stands alone."""
        return _REASON_TEXT[self]


_REASON_TEXT = {
    Reason.NONE: "",
    Reason.UNDECODABLE: "not code: the bytes do not decode",
    Reason.BREAKPOINT: "a breakpoint of the image's own",
    Reason.LANDING_PAD: "a branch-target landing pad: hardware checks that it is there",
    Reason.EXCLUSIVE: "inside an exclusive load/store region: a trap would break the reservation",
    Reason.PRIVILEGED_FLOW: "returns from an exception: the trampoline would never be left",
    Reason.INTERRUPT_FLAG: "reads or changes the interrupt flag, which the trap path holds",
    Reason.INTERRUPT_SHADOW: "opens an interrupt shadow that must cover the next instruction",
    Reason.SYSTEM_CALL: "enters another privilege level and records its own address",
    Reason.DATA: "data, not code: an instruction of the image loads from it",
    Reason.PATCHED_AT_BOOT: "in an alternative: at boot the kernel writes here what suits the CPU",
    Reason.STATIC_KEY: "on a static key: the kernel makes it a jump or a nop",
    Reason.STATIC_CALL: "on a static call: the kernel writes here which function is called",
    Reason.TRACER_CALL: "at the call of the kernel's function tracer, which writes here",
    Reason.THUNK: "on a jump through a thunk: at boot the kernel replaces it",
    Reason.RETURN_THUNK: "a return through a thunk: at boot the kernel writes how it returns on this CPU",
    Reason.RUNTIME_CONSTANT: "an instruction into which the kernel writes a constant at boot",
    Reason.LOOP_HEAD: "the head of a loop: the probe would fire at every iteration",
    Reason.REPLACEMENT: "a replacement: the kernel copies it elsewhere, and it never runs here",
    Reason.RELOCATED: "a relocation is applied to these bytes at load time",
    Reason.OUT_OF_REACH: "its operand is out of reach of the trampoline",
    Reason.EXCLUDED_FUNCTION: "the function is excluded",
    Reason.TRAP_PATH: "part of the trap path",
    Reason.NO_PROLOGUE: "no instruction at the function's entry can be probed",
    Reason.TRANSLATION: "changes address translation, under which the trampoline must stay reachable",
    Reason.UNSUPPORTED: "not supported",
    Reason.PADDING: "padding between functions, never executed",
    Reason.AUTHENTICATED: "authenticates a pointer with keys that only the CPU holds",
    Reason.UNSEEN_TAIL_CALL: "a conditional or indirect jump in a trampoline: whether it returns is not seen",
    Reason.OTHER_MODE: "16- or 32-bit code, or beside a change of mode: the processor may not be in 64-bit mode here",
    Reason.NO_NOP: "no nop: the image's record of this static probe does not fit its code",
    Reason.UNREACHED: "data, not code: nothing leads here, and no code has what follows",
    Reason.UNVOUCHED: "not known to be code: symbols and FDEs cover the rest, and nothing leads here (--force-code)",
    Reason.NO_BOUNDARY: "no instruction begins here: debug information does not fit the code",
    Reason.NO_FUNCTION: "no function holds this copy",
    Reason.SEQUENCE: "one of a sequence that has to stay together: the processor may begin it again from its first",
    Reason.RECORDED: "the processor records its address: the guest could see the trampoline's",
}


# The kernel itself writes to them (`kinst.targets.kernels.patched_at_boot`): their sites are deferred.
DEFERRED: Final = (
    Reason.PATCHED_AT_BOOT,
    Reason.STATIC_KEY,
    Reason.STATIC_CALL,
    Reason.TRACER_CALL,
    Reason.THUNK,
    Reason.RETURN_THUNK,
    Reason.RUNTIME_CONSTANT,
)
# What a loader of modules writes once, before their code runs.
WRITTEN_AT_LOAD: Final = (
    Reason.RELOCATED,
    Reason.PATCHED_AT_BOOT,
    Reason.THUNK,
    Reason.RETURN_THUNK,
    Reason.RUNTIME_CONSTANT,
)
# The bytes by themselves, or who reads them, say that they are no instruction.
NO_CODE: Final = (Reason.UNDECODABLE, Reason.DATA)


@dataclass(frozen=True, slots=True)
class Instructions:
    """Columns of the same length, in address order within each function.

    `target` is the destination of a direct flow, or the address read by a PC-relative load (flow NEXT); 0 where there
    is none. `function` is the row of the function (of the ranges given to the dissector). `kind` is the machine's own
    `Kind`.
    """

    address: NDArray[np.uint64]
    target: NDArray[np.uint64]
    function: NDArray[np.int32]
    size: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    flow: NDArray[np.uint8]
    verdict: NDArray[np.uint8]
    reason: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.address)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Instructions":
        """The rows chosen by an index array or a mask."""
        return Instructions(*(getattr(self, field.name)[rows] for field in fields(self)))

    def refuse(self, rows: NDArray[np.bool_], reason: Reason | NDArray[np.uint8]) -> "Instructions":
        """The same instructions with `rows` (a mask) refused, for one reason or each for its own; an earlier refusal
        stays."""
        fresh = rows & (self.verdict != Verdict.REFUSE)
        verdict, reasons = self.verdict.copy(), self.reason.copy()
        verdict[fresh] = Verdict.REFUSE
        reasons[fresh] = reason if isinstance(reason, Reason) else reason[fresh]
        return Instructions(self.address, self.target, self.function, self.size, self.kind, self.flow, verdict, reasons)

    def defer(self, rows: NDArray[np.bool_], reason: NDArray[np.uint8]) -> "Instructions":
        """The same instructions with `rows` (a mask) deferred, each for its reason; what is refused stays refused."""
        found = self.refuse(rows, reason)
        fresh = rows & (self.verdict != Verdict.REFUSE)
        found.verdict[fresh] = Verdict.DEFER
        return found
