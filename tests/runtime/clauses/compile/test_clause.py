"""Clauses made by hand: what they record, change and abort."""

import pytest

from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.dlang import program
from kinst.runtime.dlang.program import AggregatingFunction, Aggregation, Scope
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, STACK, STRING, SYMBOL, UINT32, UINT64, ULONG, VOID, DType
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.targets.c_types import Aggregate, AggregateKind, Array, Integer, Member, Pointer
from tests.runtime.clauses.compile.running import (
    COUNT,
    GUEST,
    Bench,
    argument,
    assign,
    binary,
    number,
    read,
    text,
    update,
    variable,
)

FALSE = binary("==", argument(0), number(99), INT)
DIVIDE = binary("/", number(1), read(variable(Scope.GLOBAL, "never")))


def trace(value: program.Expression) -> program.Trace:
    return program.Trace(value)


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_record_names_its_probe_and_clause() -> None:
    bench = Bench()
    bench.compile()
    bench.firing.cpu = 3
    bench.compile(trace(argument(1)), program.Printf("printf", b"%d%s", (argument(0), text(b"x"))))()
    assert bench.records() == [(3, 5, 1, 0, (2, (1, b"x")))]


def test_the_default_action_records_nothing_but_the_firing() -> None:
    assert Bench().run() == [()]


def test_a_record_carries_the_time_where_it_is_asked_for_and_that_is_timestamp() -> None:
    bench = Bench(records_time=True)
    bench.compile(trace(program.Builtin(UINT64, "timestamp")))()
    assert bench.records() == [(0, 5, 0, 1007, (1007,))]


def test_time_stands_still_in_a_clause_and_goes_on_in_the_next() -> None:
    bench = Bench()
    now = program.Builtin(UINT64, "timestamp")
    assert bench.run(trace(now), trace(now)) == [(1007, 1007)]
    assert bench.run(trace(now)) == [(1014,)]


def test_a_false_predicate_records_nothing() -> None:
    bench = Bench()
    assert bench.run(trace(argument(0)), predicate=FALSE) == []
    assert bench.run(trace(argument(0)), predicate=argument(0)) == [(1,)]


def test_values_are_recorded_as_they_were_when_their_action_ran() -> None:
    x = variable(Scope.GLOBAL, "x")
    actions = (assign(read(x), number(1)), trace(read(x)), assign(read(x), number(2)), trace(read(x)))
    assert Bench().run(*actions) == [(1, 2)]


def test_a_recorded_number_is_as_wide_as_its_type() -> None:
    beyond = binary("+", number(0x7FFF_FFFF, INT), number(1, INT), INT)
    assert Bench().run(trace(beyond), trace(program.Convert(LONG, beyond))) == [(-(1 << 31), 1 << 31)]


def test_a_clause_that_finds_no_room_does_nothing_at_all() -> None:
    bench = Bench()
    x = variable(Scope.GLOBAL, "x")
    bench.compile(assign(read(x), number(1)), size=1 << 40)()
    assert bench.value(read(x)) == 0
    assert bench.buffers.drops == {0: 1}


def test_actions_that_the_consumer_performs_record_that_they_happened() -> None:
    change = program.ChangeAggregation("trunc", COUNT, number(5))
    actions = (
        change,
        program.ChangeAggregation("clear", COUNT, None),
        program.Printa(None, (COUNT,)),
        program.SetOption((text(b"quiet"),)),
        program.Truncate(),
    )
    assert Bench().run(*actions) == [(5, None, None, (b"quiet",), None)]


def test_stacks_and_names_of_addresses() -> None:
    bench = Bench()
    key = program.SymbolKey(SYMBOL, "sym", number(0x1234, ULONG))
    actions = (
        program.StackTrace(is_user=False, frames=2),
        program.StackTrace(is_user=True, frames=None),
        program.SymbolTrace(key),
    )
    user = Stack((1, 2, 3), 20, is_user=True, process=42, names=("f+1", "f+2", "f+3"))
    expected = (Stack((0x100, 0x101), 2), user, SymbolName("sym", 0x1000))
    assert bench.run(*actions) == [expected]
    assert bench.value(program.StackKey(STACK, is_user=False, frames=1)) == Stack((0x100,), 1)


def test_memory_is_recorded_as_bytes() -> None:
    bench = Bench()
    bench.environment.ram.data[:4] = b"abcd"
    address = number(GUEST, ULONG)
    actions = (
        program.TraceMemory(address, 4, None),
        program.TraceMemory(address, 4, number(2)),
        program.TraceMemory(address, 4, number(0)),
        program.TraceMemory(address, 4, number(-1)),
        trace(program.Load(Array(CHAR, 3), address)),
    )
    assert bench.run(*actions) == [(b"abcd", b"ab", b"abcd", b"abcd", b"abc")]


def test_printm_follows_the_reference() -> None:
    bench = Bench()
    bench.environment.ram.data[:16] = (GUEST + 100).to_bytes(8, "little") + (6).to_bytes(8, "little")
    bench.environment.ram.data[100:106] = b"abcdef"
    reference = number(GUEST, ULONG)
    assert bench.run(program.PrintMemory(16, reference), program.PrintMemory(2, reference)) == [(b"abcdef", b"ab")]


def test_exit_ends_tracing_but_not_its_clause() -> None:
    bench = Bench()
    assert bench.run(program.Exit(number(3)), trace(argument(0))) == [(3, 1)]
    assert bench.environment.exits == [3]
    assert bench.run(trace(argument(0))) == []
    bench.state.is_tracing = True  # END
    assert bench.run(trace(argument(0))) == [(1,)]


def test_destructive_actions_act_at_once() -> None:
    bench = Bench()
    bench.run(program.Destructive("raise", number(9)), program.Destructive("stop", None))
    assert bench.environment.acts == [("raise", 9), ("stop", 0)]


# -- aggregations -----------------------------------------------------------------------------------------------------


def aggregated(bench: Bench) -> dict[tuple[object, ...], object]:
    return {key: value for contents in bench.aggregations.take() for key, value in contents.table.items()}


def test_aggregating_takes_keys_value_and_increment() -> None:
    bench = Bench()
    quantize = Aggregation(2, "q", AggregatingFunction.QUANTIZE, (LONG,))
    bench.compile(program.Aggregate(COUNT, (), None), program.Aggregate(COUNT, (), None), size=0)()
    assert aggregated(bench) == {(): 2}
    bench.compile(program.Aggregate(quantize, (argument(1),), number(5), number(10)), size=0)()
    assert [list(table.values()) for table in aggregated(bench).values()] == [[10]]  # type: ignore[attr-defined]
    assert bench.records() == []


def test_keys_are_as_wide_as_their_types() -> None:
    bench = Bench()
    beyond = binary("+", number(0x7FFF_FFFF, INT), number(1, INT), INT)
    key = Aggregation(1, "k", AggregatingFunction.COUNT, (INT, STRING))
    bench.compile(program.Aggregate(key, (beyond, text(b"s")), None), size=0)()
    assert aggregated(bench) == {(-(1 << 31), b"s"): 1}


# -- faults -----------------------------------------------------------------------------------------------------------


def test_a_fault_leaves_no_record_but_what_was_assigned_stays() -> None:
    bench = Bench()
    x = variable(Scope.GLOBAL, "x")
    assert bench.run(assign(read(x), number(7)), trace(number(1)), trace(DIVIDE)) == []
    [(clause, action, fault)] = bench.environment.faults
    bench.environment.faults.clear()
    assert (clause, action, fault.kind) == (0, 3, FaultKind.DIVZERO)
    assert bench.value(read(x)) == 7


def test_a_fault_in_the_predicate_is_action_0() -> None:
    bench = Bench()
    bench.run(trace(number(1)), predicate=DIVIDE)
    assert [action for _, action, _ in bench.environment.faults] == [0]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_arguments_and_keys_are_actions_of_their_own(position: int) -> None:
    bench = Bench()
    arguments = [argument(0)] * 3
    values = tuple(DIVIDE if index == position else value for index, value in enumerate(arguments))
    sums = Aggregation(1, "s", AggregatingFunction.SUM, (LONG, LONG))
    bench.compile(program.Printf("printf", b"", values))()
    bench.compile(program.Aggregate(sums, values[:2], values[2]), size=0)()
    assert [action for _, action, _ in bench.environment.faults] == [1 + position, 2 + position]


@pytest.mark.parametrize(("faulting", "action"), [("value", 4), ("increment", 3)])
def test_an_increment_is_an_action_before_the_function(faulting: str, action: int) -> None:
    bench = Bench()
    powers = Aggregation(1, "q", AggregatingFunction.QUANTIZE, (LONG,))
    value = DIVIDE if faulting == "value" else argument(0)
    increment = DIVIDE if faulting == "increment" else argument(0)
    bench.compile(program.Aggregate(powers, (argument(0),), value, increment), size=0)()
    assert [number for _, number, _ in bench.environment.faults] == [action]


def test_an_error_of_ours_is_not_a_fault_of_the_program() -> None:
    def broken() -> int:
        raise KeyError("ours")

    bench = Bench()
    bench.state.subroutines = {"rand": broken}
    with pytest.raises(KeyError, match="ours"):
        bench.run(trace(program.Call(LONG, "rand", ())))
    assert bench.environment.faults == []


# -- speculations -----------------------------------------------------------------------------------------------------


def test_a_speculation_keeps_the_record_until_it_is_committed() -> None:
    bench = Bench()
    identifier = bench.speculations.create(0)
    assert bench.run(program.Speculate(number(identifier, INT)), trace(argument(0))) == []
    bench.compile(program.Commit(number(identifier, INT)), size=0)()
    assert [record[4] for record in bench.records()] == [(1,)]


def test_a_discarded_speculation_is_gone() -> None:
    bench = Bench()
    identifier = bench.speculations.create(0)
    bench.run(program.Speculate(number(identifier, INT)), trace(argument(0)))
    bench.compile(program.Discard(number(identifier, INT)), size=0)()
    bench.compile(program.Commit(number(identifier, INT)), size=0)()
    assert bench.records() == []


def test_speculate_0_skips_the_rest_of_the_clause() -> None:
    bench = Bench()
    x = variable(Scope.GLOBAL, "x")
    assert bench.run(program.Speculate(number(0, INT)), assign(read(x), number(1)), trace(argument(0))) == []
    assert bench.value(read(x)) == 0
    assert bench.environment.faults == []


def test_a_speculation_that_cannot_be_is_an_illegal_operation() -> None:
    bench = Bench()
    bench.run(program.Speculate(number(-1, INT)))
    assert [(action, fault.kind) for _, action, fault in bench.environment.faults] == [(1, FaultKind.ILLOP)]


def test_speculation_gives_numbers_and_0_when_there_are_no_more() -> None:
    bench = Bench()
    create = program.Call(INT, "speculation", ())
    assert [bench.value(create) for _ in range(3)] == [1, 2, 0]


# -- subroutines ------------------------------------------------------------------------------------------------------


def test_subroutines_take_and_give_values() -> None:
    bench = Bench()
    joined = program.Call(STRING, "strjoin", (text(b"a"), program.Builtin(STRING, "execname")))
    assert bench.value(joined) == b"akernel.elf"
    assert bench.value(program.Call(LONG, "strlen", (joined,))) == 11
    with pytest.raises(Fault) as caught:
        bench.value(program.Call(STRING, "lltostr", (number(5), number(1, INT))))
    assert caught.value.kind is FaultKind.ILLOP


def test_scratch_memory_is_empty_when_a_clause_begins() -> None:
    bench = Bench()
    allocate = trace(program.Call(ULONG, "alloca", (number(4 << 20),)))
    assert len(bench.run(allocate)) == len(bench.run(allocate)) == 1
    assert bench.run(allocate, trace(program.Call(ULONG, "alloca", (number(1),)))) == []
    assert [fault.kind for _, _, fault in bench.environment.faults] == [FaultKind.NOSCRATCH]


def test_only_programs_that_continue_strings_ask_to_know_of_firings() -> None:
    bench = Bench()
    bench.run(trace(argument(0)))
    assert not bench.state.remembers_firings
    first = program.Call(STRING, "strtok", (text(b"a,b"), text(b",")))
    again = program.Call(STRING, "strtok", (program.Integer(STRING, 0), text(b",")))
    assert bench.run(trace(first)) + bench.run(trace(again)) == [(b"a",), (b"b",)]
    assert bench.state.remembers_firings
    bench.run(trace(first))
    bench.state.begin()
    assert bench.run(trace(again)) == []
    assert bench.environment.faults.pop()[2].kind is FaultKind.BADADDR


# -- variables --------------------------------------------------------------------------------------------------------

PLAIN = [variable(scope, "v", INT) for scope in Scope]


@pytest.mark.parametrize("of", PLAIN, ids=lambda of: of.scope.value)
def test_a_variable_keeps_what_its_type_holds(of: program.Variable) -> None:
    bench = Bench()
    assert bench.value(read(of)) == 0
    bench.run(assign(read(of), number((1 << 32) - 2)))
    assert bench.value(read(of)) == -2
    assert bench.value(update(read(of), "+", number(5), gives_old=True)) == -2
    assert bench.value(update(read(of), "*", number(4))) == 12
    bench.run(program.Evaluate(update(read(of), "-", number(2), gives_old=True)))
    assert bench.value(program.Assign(INT, read(of), binary("+", read(of), number(1 << 31)))) == 10 - (1 << 31)


def test_threads_have_their_own_and_cpus_too() -> None:
    own, local = variable(Scope.THREAD, "v"), variable(Scope.CLAUSE, "v")
    bench = Bench()
    bench.run(assign(read(own), number(1)), assign(read(local), number(2)))
    bench.firing.thread = 7
    assert bench.run(trace(read(own)), trace(read(local))) == [(0, 2)]
    bench.firing.thread, bench.firing.cpu = 0, 1
    assert bench.run(trace(read(own)), trace(read(local))) == [(1, 0)]


def test_keys_compare_by_value_in_the_type_that_the_array_declares() -> None:
    array = variable(Scope.GLOBAL, "a", STRING, ULONG, STRING)
    bench = Bench()
    bench.run(assign(read(array, number(-1), text(b"k")), text(b"found")))
    assert bench.value(read(array, number((1 << 64) - 1, ULONG), text(b"k"))) == b"found"
    assert bench.value(binary("==", read(array, number(1), text(b"k")), text(b""))) == 1


def test_an_updated_elements_keys_are_evaluated_once() -> None:
    array, index = variable(Scope.THREAD, "a", LONG, LONG), variable(Scope.GLOBAL, "i")
    bench = Bench()
    key = update(read(index), "+", number(1), gives_old=True)
    bench.run(program.Evaluate(update(read(array, key), "+", number(5))))
    assert bench.value(read(index)) == 1
    assert bench.value(read(array, number(0))) == 5


def test_null_is_the_empty_string() -> None:
    of = variable(Scope.GLOBAL, "s", STRING)
    bench = Bench()
    bench.run(assign(read(of), text(b"x")))
    assert bench.value(binary("==", read(of), number(0), INT)) == 0
    bench.run(assign(read(of), number(0)))
    assert bench.value(binary("==", read(of), number(0), INT)) == 1


def structure() -> Aggregate:
    made = Aggregate(AggregateKind.STRUCT, "s")
    members = (
        Member("number", LONG, 0),
        Member("low", INT, 8, 0, 3),
        Member("high", INT, 8, 3, 5),
        Member("text", Array(CHAR, 4), 12),
    )
    made.complete(members, 16, 8)
    return made


def member(base: program.Expression, offset: int, kind: DType, bits: tuple[int, int] | None = None) -> program.Load:
    address = binary("+", base, number(offset), ULONG)
    return program.Load(kind, address, bits)


@pytest.mark.parametrize("scope", list(Scope), ids=lambda scope: scope.value)
def test_a_struct_is_copied_and_its_members_are_assigned(scope: Scope) -> None:
    kind = structure()
    of = variable(scope, "s", kind)
    bench = Bench()
    bench.environment.ram.data[:16] = (77).to_bytes(8, "little") + b"\x0d\0\0\0" + b"abcd"
    bench.run(assign(read(of), program.Load(kind, number(GUEST, ULONG))))
    bench.environment.ram.data[:16] = bytes(16)
    low, high = member(read(of), 8, INT, (0, 3)), member(read(of), 8, INT, (3, 5))
    assert bench.run(trace(member(read(of), 0, LONG)), trace(low), trace(high)) == [(77, -3, 1)]
    assert bench.value(program.Assign(INT, high, number(17))) == -15
    bench.run(program.Evaluate(update(member(read(of), 0, LONG), "+", number(1))))
    bench.run(assign(member(read(of), 12, Array(CHAR, 4)), text(b"xy")))
    assert bench.value(read(of)) == (78).to_bytes(8, "little") + b"\x8d\0\0\0" + b"xy\0d"
    assert (bench.value(low), bench.value(high)) == (-3, -15)


def test_the_guests_memory_is_not_assigned_to() -> None:
    bench = Bench()
    with pytest.raises(Fault) as caught:
        bench.value(program.Assign(LONG, program.Load(LONG, number(GUEST, ULONG)), number(1)))
    assert (caught.value.kind, caught.value.value) == (FaultKind.BADADDR, GUEST)


# -- other expressions ------------------------------------------------------------------------------------------------


def test_loads_extend_by_the_sign_of_their_type() -> None:
    bench = Bench()
    bench.environment.ram.data[:8] = b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8"
    address = number(GUEST, ULONG)
    assert bench.value(program.Load(INT, address)) == -0x03020101
    assert bench.value(program.Load(UINT32, address)) == 0xFCFDFEFF
    assert bench.value(program.Load(LONG, address)) == int.from_bytes(b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", "little") - (
        1 << 64
    )
    assert bench.value(program.Load(Integer("char", 1, is_signed=True), address)) == -1


def test_a_bad_address_is_named() -> None:
    bench = Bench()
    with pytest.raises(Fault) as caught:
        bench.value(program.Load(LONG, number(0x10)))
    assert (caught.value.kind, caught.value.value) == (FaultKind.BADADDR, 0x10)


def test_strings_end_at_nul_strsize_and_the_arrays_end() -> None:
    bench = Bench({"strsize": 8})
    bench.environment.ram.data[:12] = b"abcdefghij\0k"
    address = number(GUEST, ULONG)
    assert bench.value(program.StringOf(STRING, address)) == b"abcdefgh"
    assert bench.value(program.StringOf(STRING, program.Load(Array(CHAR, 3), address), 3)) == b"abc"
    assert bench.value(program.StringOf(STRING, number(GUEST + 8, ULONG))) == b"ij"
    assert bench.value(text(b"0123456789")) == b"01234567"


def test_a_string_becomes_a_pointer_to_a_copy() -> None:
    bench = Bench()
    pointer = program.Convert(Pointer(CHAR), text(b"hello"))
    assert bench.value(program.StringOf(STRING, binary("+", pointer, number(1), Pointer(CHAR)))) == b"ello"


def test_strings_compare_as_unsigned_bytes() -> None:
    bench = Bench()
    probe = program.Builtin(STRING, "execname")
    assert bench.value(binary(">", text(b"\xff"), probe, INT)) == 1
    assert bench.value(binary("==", text(b"kernel.elf"), probe, INT)) == 1


def test_logic_stops_as_soon_as_it_knows() -> None:
    x = variable(Scope.GLOBAL, "x")
    bench = Bench()
    changed = update(read(x), "+", number(1))
    for operator, left, expected in (("&&", 0, 0), ("||", 5, 1), ("&&", 5, 1), ("||", 0, 1)):
        assert bench.value(program.Logical(INT, operator, binary("*", argument(0), number(left)), changed)) == expected
    assert bench.value(read(x)) == 2
    for left, right in ((0, 0), (0, 7), (7, 0), (7, 9)):
        bench.arguments = (left, right)
        assert bench.value(program.Logical(INT, "^^", argument(0), argument(1))) == (bool(left) != bool(right))


def test_a_bound_value_is_evaluated_once_also_where_it_is_used_deep_inside() -> None:
    x = variable(Scope.GLOBAL, "x")
    bench = Bench()
    body: program.Expression = program.Bound(LONG, 1)
    for _ in range(100):
        body = binary("+", program.Bound(LONG, 1), body)
    bound = program.Bind(LONG, 1, update(read(x), "+", number(1)), body)
    assert bench.value(bound) == 101
    assert bench.value(read(x)) == 1


BUILTINS = [
    ("cpu", INT, 0),
    ("id", UINT32, 5),
    ("epid", UINT32, 5),
    ("arg1", LONG, 2),
    ("arg9", LONG, 0),
    ("probeprov", STRING, b"fbt"),
    ("probemod", STRING, b"kernel"),
    ("probefunc", STRING, b"m" * 256),
    ("probename", STRING, b"entry"),
    ("execname", STRING, b"kernel.elf"),
    ("zonename", STRING, b"x" * 256),
    ("pid", INT, 42),
    ("errno", INT, -5),
    ("curthread", Pointer(VOID), 0xFFFF_8000_0000_1000),
    ("caller", ULONG, 0xFFFF_FFFF_8000_0000),
    ("stackdepth", UINT32, 30),
    ("ustackdepth", UINT32, 3),
    ("ucaller", UINT64, 2),
    ("timestamp", UINT64, 1007),
    ("vtimestamp", UINT64, 1007),
    ("walltimestamp", LONG, 1_600_000_000_000_001_007),
]


@pytest.mark.parametrize(("name", "kind", "expected"), BUILTINS, ids=[name for name, _, _ in BUILTINS])
def test_builtins(name: str, kind: DType, expected: object) -> None:
    assert Bench().value(program.Builtin(kind, name)) == expected


def test_a_probe_that_is_no_longer_known_has_no_names() -> None:
    bench = Bench()
    bench.firing.enabling = type(bench.firing.enabling)(6, lambda _firing: None, lambda _firing, _index: 0, 0)
    assert bench.value(program.Builtin(STRING, "probefunc")) == b""


def test_arguments_are_signed_and_typed_ones_as_their_type() -> None:
    bench = Bench()
    bench.arguments = ((1 << 64) - 2, -3)
    assert bench.value(argument(0)) == -2
    assert bench.value(program.Builtin(ULONG, "args", number(1))) == (1 << 64) - 3
    assert bench.value(program.Builtin(INT, "args", number(0))) == -2


def test_registers_by_index() -> None:
    bench = Bench()
    assert bench.value(program.Builtin(UINT64, "regs", number(2))) == 102
    assert bench.value(program.Builtin(UINT64, "uregs", argument(0))) == 1101
    for index in (number(1000), number(-1), program.Unary(LONG, "-", argument(0))):
        for name in ("regs", "uregs"):
            with pytest.raises(Fault) as caught:
                bench.value(program.Builtin(UINT64, name, index))
            assert caught.value.kind is FaultKind.ILLOP
    bench.environment.profile.has_user_mode = False
    with pytest.raises(Fault) as caught:
        bench.value(program.Builtin(UINT64, "uregs", number(0)))
    assert caught.value.kind is FaultKind.BADADDR


# -- size -------------------------------------------------------------------------------------------------------------


def chained(length: int) -> program.Expression:
    found: program.Expression = argument(0)
    for _ in range(length):
        found = binary("+", found, argument(1))
    return found


def nested(depth: int) -> program.Expression:
    found: program.Expression = argument(0)
    for _ in range(depth):
        found = binary("+", argument(1), program.Convert(LONG, program.Convert(UINT32, found)))
    return found


def ladder(length: int) -> program.Expression:
    found: program.Expression = argument(2)
    for index in range(length):
        found = program.Conditional(LONG, binary("==", argument(1), number(-index), INT), number(-1), found)
    return found


def comma(length: int) -> program.Expression:
    found: program.Expression = argument(1)
    for _ in range(length):
        found = program.Comma(LONG, found, argument(2))
    return found


def all_of(length: int) -> program.Expression:
    found: program.Expression = argument(0)
    for _ in range(length):
        found = program.Logical(INT, "&&", found, argument(1))
    return found


LARGE = [(chained(2000), 4001), (nested(128), 257), (ladder(2000), 3), (comma(2000), 3), (all_of(2000), 1)]


@pytest.mark.parametrize(("expression", "expected"), LARGE, ids=["chain", "nested", "ladder", "comma", "logic"])
def test_large_expressions_are_compiled(expression: program.Expression, expected: int) -> None:
    assert Bench().value(expression) == expected


@pytest.mark.parametrize("scope", [Scope.GLOBAL, Scope.THREAD])
def test_an_array_of_a_terabyte_is_an_error_or_has_no_room(scope: Scope) -> None:
    bench = Bench()
    huge = variable(scope, "huge", Array(CHAR, 1 << 40))
    if scope is Scope.GLOBAL:
        with pytest.raises(DError, match="too large"):
            bench.run(trace(member(read(huge), 0, CHAR)))
    else:
        bench.run(trace(member(read(huge), 0, CHAR)))
        assert [fault.kind for _, _, fault in bench.environment.faults] == [FaultKind.BADADDR]
        assert bench.state.variables.drops == {0: 1}


def test_what_nests_beyond_all_bounds_is_an_error_of_the_program() -> None:
    with pytest.raises(DError, match="nested too deep"):
        Bench().value(nested(5000))
