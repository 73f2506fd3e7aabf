"""Parameters of an inlined copy, found by debug information -> arg0, arg1, ... of the probes in that copy.

At entry and at return, the arguments are the function's parameters, as far as they are still live at that instruction:
a copy returns nothing in a register, and fbt's arg0 (an offset) has no meaning here. A parameter that the compiler did
not keep is a fault with the text "optimised out", not a plausible number. Past the last parameter, arguments are 0 as
kinst's are.
"""

from collections.abc import Callable, Sequence

from kinst.rewriter.naming.inline_probes import InlineSite
from kinst.runtime.patched.sites import Argument
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing
from kinst.runtime.unwinding.location_operations import OPTIMISED_OUT, Terms
from kinst.runtime.unwinding.locations import Expression, FiringFrame, Machine, optimised_out
from kinst.targets.c_types import CType, EnumType, Integer, size_of, strip
from kinst.targets.debuginfo.inlined import InlinedCopy, InlinedParameter, Location
from kinst.targets.errors import KinstError
from kinst.targets.values import dataclass

_WORD = 8
NOT_KEPT = "arguments of inlined copies are known only with debug information (--debug-file)"
Value = Callable[[Firing], int]


@dataclass(frozen=True, slots=True)
class InlineArguments:
    """Makes the functions that read the arguments of sites."""

    machine: Machine
    terms: Callable[[int], Terms]  # by a unit's offset in .debug_info; raises KinstError

    def at(self, site: InlineSite) -> Argument:
        """A function that gives arg0, arg1, ... at a site where copies are entered or left."""
        if not site.knows_arguments:
            return _unknown
        copy = _asked(site)
        parameters = copy.parameters
        values: list[Value | None] = [None] * len(parameters)

        def argument(firing: Firing, index: int) -> int:
            if index >= len(values) or index < 0:
                return 0
            value = values[index]
            if value is None:
                value = values[index] = self._value(parameters[index], copy, site.address)
            return value(firing)

        return argument

    def _value(self, parameter: InlinedParameter, copy: InlinedCopy, address: int) -> Value:
        if parameter.constant is not None:
            size, is_signed = _shape(parameter.type)
            constant = _of_type(parameter.constant, size, is_signed=is_signed)
            return lambda _firing: constant
        location = _location(parameter, copy, address)
        if location is None:
            return _faulting(optimised_out())
        return self._placed(location, parameter.type)

    def _placed(self, location: Location, kind: CType | None) -> Value:
        try:
            expression = Expression(location.expression, self.terms(location.unit), location.frame_base)
        except (ValueError, KinstError) as error:
            known = str(error) == OPTIMISED_OUT
            return _faulting(optimised_out() if known else Fault(FaultKind.ILLOP, 0, str(error)))
        (size, is_signed), machine = _shape(kind), self.machine
        if not is_signed:
            return lambda firing: expression.value(FiringFrame(machine, firing), size)
        return lambda firing: _of_type(expression.value(FiringFrame(machine, firing), size), size, is_signed=True)


def _unknown(_firing: Firing, _index: int) -> int:
    raise Fault(FaultKind.ILLOP, 0, NOT_KEPT)


def _asked(site: InlineSite) -> InlinedCopy:
    """The copy, of those that share the address, most of whose parameters have a location there: where one copy ends
    and the next begins, both have the address. The first among equals."""
    first = site.copies[0]
    if len(site.copies) == 1:
        return first
    names = [one.name for one in first.parameters]
    same = [copy for copy in site.copies if [one.name for one in copy.parameters] == names]
    return max(same, key=lambda copy: sum(_is_known(one, copy, site.address) for one in copy.parameters))


def _is_known(parameter: InlinedParameter, copy: InlinedCopy, address: int) -> bool:
    return parameter.constant is not None or _location(parameter, copy, address) is not None


def _location(parameter: InlinedParameter, copy: InlinedCopy, address: int) -> Location | None:
    """Where a parameter is; None if it was optimised out. At the entry of a copy, the range of a location may be empty
    (low = high): the value is passed in and not kept, so that it is still valid at the entry itself."""
    for one in parameter.locations:
        if one.low <= address < one.high or one.low == address == one.high == copy.entry:
            return one if one.expression else None
    return None


def _of_type(value: int, size: int, *, is_signed: bool) -> int:
    value &= (1 << 8 * size) - 1
    return value - (1 << 8 * size) if is_signed and value >> 8 * size - 1 else value


def _shape(kind: CType | None) -> tuple[int, bool]:
    """The size of a value in bytes, 8 at most for a struct; and whether it is signed."""
    if kind is None:
        return _WORD, False
    plain = strip(kind)
    base = plain.base if isinstance(plain, EnumType) else plain
    size = size_of(plain) or _WORD
    return min(size, _WORD), isinstance(base, Integer) and base.is_signed


def _faulting(fault: Fault) -> Value:
    def value(_firing: Firing) -> int:
        raise Fault(fault.kind, fault.value, fault.text)

    return value


def parameter_types(sites: Sequence[InlineSite], are_equal: Callable[[CType, CType], bool]) -> tuple[CType, ...] | None:
    """The types of args[], if all copies have the same; else None. They end before the first that is not known."""
    kinds: tuple[CType, ...] | None = None
    for site in sites:
        own = known_types(site.copies[0].parameters)
        if kinds is None:
            kinds = own
        elif len(own) != len(kinds) or not all(map(are_equal, own, kinds)):
            return None
    return kinds


def known_types(parameters: Sequence[InlinedParameter]) -> tuple[CType, ...]:
    """The types of a copy's args[]. They end before the first that is not known."""
    found = []
    for parameter in parameters:
        if parameter.type is None:
            break
        found.append(parameter.type)
    return tuple(found)
