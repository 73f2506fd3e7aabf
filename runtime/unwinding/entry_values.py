"""DW_OP_entry_value -> what a register held when the surrounding function was entered. As in gdb, the caller's debug
information says how to compute it now, from what the caller will have when the function returns.

The value is known only if the call before the return address entered this very function; otherwise it is
`optimised_out`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kinst.runtime.clauses.environment import Memory
from kinst.runtime.trap.faults import Fault
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.call_instructions import CallInstructions
from kinst.runtime.unwinding.caller_frames import Activation, CallerFrames
from kinst.runtime.unwinding.location_operations import Entered
from kinst.runtime.unwinding.locations import LOST_ENTRY, Expression, optimised_out
from kinst.runtime.unwinding.tail_calls import TailCalls
from kinst.targets.debuginfo.call_sites import CallingFunction, CallParameter, CallSite, CallSites
from kinst.targets.errors import KinstError

_DEEPEST: Final = 16  # callers whose own entry values may be needed
_MOST: Final = 256  # values that one answer may need; real ones need a few


class _Call(NamedTuple):
    """A call that the unwinder found: its caller, and the function that it enters."""

    caller: Activation
    function: CallingFunction
    site: CallSite
    target: CallingFunction


class EntryValues:
    """The entry values of one image. Nothing is read until a value is needed."""

    def __init__(
        self,
        frames: CallerFrames,
        memory: Memory,
        instructions: CallInstructions,
        sites: Callable[[], CallSites],
        *,
        bias: int = 0,
    ) -> None:
        """`sites` raises KinstError if there is no debug information."""
        self.frames = frames
        self.memory = memory
        self.bias = bias
        self._instructions = instructions
        self._open = sites
        self._sites: CallSites | None = None
        self._tails: TailCalls | None = None
        self._expressions: dict[tuple[int, int, bytes], Expression | None] = {}
        self._left = 0  # values that the current answer may still need

    def of_firing(self, firing: Firing, wanted: Entered) -> int:
        """The entry value of the function in which a probe fired. Raises Fault."""
        self._left = _MOST
        try:
            return self.of(self.frames.innermost(firing), wanted, 0)
        except KinstError:
            raise optimised_out(LOST_ENTRY) from None

    def of(self, activation: Activation, wanted: Entered, depth: int) -> int:
        """The entry value of any function that is being executed. `depth`: how many callers were needed so far. Raises
        Fault."""
        function = self.sites.function_at(activation.inside)
        call = None if function is None or depth > _DEEPEST else self._call(activation, depth)
        if function is None or call is None:
            raise optimised_out(LOST_ENTRY)
        return self.entered(function, call, wanted, activation, depth)

    def entered(
        self, function: CallingFunction, call: _Call, wanted: Entered, activation: Activation, depth: int
    ) -> int:
        """The entry value of a function that was entered by a call, or by tail calls after it. `activation` is what the
        call created, whichever function has the frame now. Raises Fault."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0 or self.tails.may_reenter(function):
            raise optimised_out(LOST_ENTRY)
        if call.target.offset == function.offset:
            frame = CallerFrame(self, call.caller, depth + 1)
            return self._value(call.function, call.site, call.caller.address - 1, wanted, frame)
        last = self.tails.last(call.target, function)
        if last is None:
            raise optimised_out(LOST_ENTRY)
        tail = TailFrame(self, activation, call, last.function, depth + 1)
        return self._value(last.function, last.site, last.site.place, wanted, tail)

    def frame_address(self, activation: Activation) -> int:
        """The canonical frame address, by call frame information. Raises Fault."""
        address = self.frames.frame_address(activation)
        if address is None:
            raise optimised_out(LOST_ENTRY)
        return address

    @property
    def sites(self) -> CallSites:
        """The calls of the image. Raises KinstError."""
        if self._sites is None:
            self._sites = self._open()
        return self._sites

    @property
    def tails(self) -> TailCalls:
        """The tail calls of the image. Raises KinstError."""
        if self._tails is None:
            self._tails = TailCalls(self.sites, self._instructions)
        return self._tails

    # -- the call -----------------------------------------------------------------------------------------------------

    def _call(self, activation: Activation, depth: int) -> _Call | None:
        """The call that created an activation; None if it is not known."""
        caller = self.frames.caller(activation)
        function = None if caller is None else self.sites.function_at(caller.inside)
        if caller is None or function is None:
            return None
        site = self.sites.calls_of(function).returning.get(caller.address)
        target = None if site is None else self._target(caller, function, site, depth)
        entered = None if target is None else self.tails.entered(target)
        return None if site is None or entered is None else _Call(caller, function, site, entered)

    def _target(self, caller: Activation, function: CallingFunction, site: CallSite, depth: int) -> int | None:
        """The target of a call: the instruction's, or that in debug information if the call is indirect. That one comes
        first, since a direct call may go to code that jumps to a register's value (a retpoline)."""
        instruction = self._instructions.before(caller.address)
        if instruction is None or not instruction.is_call:
            return None
        if not site.target:
            return instruction.target
        expression = self._expression(function, caller.inside, site.target)
        try:
            if expression is not None:
                return self.frames.link_address(expression.address(CallerFrame(self, caller, depth + 1)))
        except Fault:
            pass
        return instruction.target

    # -- values -------------------------------------------------------------------------------------------------------

    def _value(
        self, function: CallingFunction, site: CallSite, place: int, wanted: Entered, frame: "CallerFrame"
    ) -> int:
        """What a call passed in a register; `place` is an address in the call."""
        for parameter in site.parameters:
            if self._matches(function, parameter, wanted):
                data = parameter.data if wanted.size else parameter.value
                expression = self._expression(function, place, data) if data else None
                if expression is None:
                    break
                value = expression.address(frame)
                return value & (1 << 8 * wanted.size) - 1 if wanted.size else value
        raise optimised_out(LOST_ENTRY)

    def _matches(self, function: CallingFunction, parameter: CallParameter, wanted: Entered) -> bool:
        if wanted.parameter >= 0:
            return parameter.declared == wanted.parameter
        location = self._expression(function, 0, parameter.location) if parameter.location else None
        return location is not None and location.register == wanted.register

    def _expression(self, function: CallingFunction, place: int, data: bytes) -> Expression | None:
        """An expression of a call; None if it has an unknown operation."""
        key = function.unit, place, data
        if key not in self._expressions:
            terms = self.sites.terms(function.unit)
            try:
                self._expressions[key] = Expression(data, terms, function.frame_base(place))
            except ValueError:
                self._expressions[key] = None
        return self._expressions[key]


class CallerFrame:
    """The `LocationFrame` of a function that waits for a call to return."""

    def __init__(self, values: EntryValues, activation: Activation, depth: int) -> None:
        self._values = values
        self._activation = activation
        self._depth = depth
        self.bias = values.bias

    def register(self, number: int) -> int:
        """A register that the callee preserves. Raises Fault for others."""
        index = self._values.frames.index_of(number)
        value = None if index is None else self._activation.register(index)
        if value is None:
            raise optimised_out(LOST_ENTRY)
        return value

    def load(self, address: int, size: int) -> int:
        """A word of memory, as clauses see it."""
        return int.from_bytes(self._values.memory.read(address, size), "little")

    def frame_address(self) -> int:
        """The canonical frame address, by call frame information."""
        return self._values.frame_address(self._activation)

    def entered(self, wanted: Entered) -> int:
        """An entry value, from its own caller."""
        return self._values.of(self._activation, wanted, self._depth)


class TailFrame(CallerFrame):
    """The `LocationFrame` of a function that left by a tail call. It had restored the callee-saved registers by then,
    its frame was where its successor's is, and it was entered by the same call."""

    def __init__(
        self, values: EntryValues, activation: Activation, call: _Call, function: CallingFunction, depth: int
    ) -> None:
        """`activation` is that of the successor."""
        super().__init__(values, call.caller, depth)
        self._successor = activation
        self._call = call
        self._function = function

    def register(self, number: int) -> int:
        """A callee-saved register. The stack pointer is not known: it was somewhere near its frame. Raises Fault."""
        if self._values.frames.is_stack_pointer(number):
            raise optimised_out(LOST_ENTRY)
        return super().register(number)

    def frame_address(self) -> int:
        """The canonical frame address, which is the successor's."""
        return self._values.frame_address(self._successor)

    def entered(self, wanted: Entered) -> int:
        """An entry value, from the caller of both."""
        return self._values.entered(self._function, self._call, wanted, self._successor, self._depth)
