"""Where variables are kept, and how many there can be."""

from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.clauses.variables import Variables
from kinst.runtime.dlang.program import Scope, Variable
from kinst.runtime.dlang.types.types import CHAR, INT, LONG, STRING, DType
from kinst.targets.c_types import Array

BLOCK = Array(CHAR, 24)


def variables(dynvarsize: int = 1 << 20) -> Variables:
    return Variables(256, dynvarsize, Scratch(1 << 16))


def of(scope: Scope, kind: DType = LONG, *keys: DType) -> Variable:
    return Variable(scope, "v", kind, keys or None)


def test_a_variable_is_the_same_wherever_it_is_named() -> None:
    made = variables()
    assert made.cell(of(Scope.GLOBAL)) is made.cell(of(Scope.GLOBAL))
    assert made.dynamic(of(Scope.THREAD)) is made.dynamic(of(Scope.THREAD, INT))
    assert made.slot(of(Scope.CLAUSE)) == made.slot(of(Scope.CLAUSE)) == 0


def test_variables_begin_as_zero_or_empty_or_with_bytes_of_their_own() -> None:
    scratch = Scratch(64)
    made = Variables(256, 1 << 20, scratch)
    assert made.cell(Variable(Scope.GLOBAL, "n", LONG)).value == 0
    assert made.cell(Variable(Scope.GLOBAL, "s", STRING)).value == b""
    address = made.cell(Variable(Scope.GLOBAL, "b", BLOCK)).value
    assert isinstance(address, int) and scratch.read(address, 24) == bytes(24)


def test_each_cpu_has_a_frame_also_when_variables_come_later() -> None:
    scratch = Scratch(64)
    made = Variables(256, 1 << 20, scratch)
    made.slot(Variable(Scope.CLAUSE, "a", LONG))
    made.frames[0][0] = 5
    assert made.slot(Variable(Scope.CLAUSE, "b", STRING)) == 1
    block = made.slot(Variable(Scope.CLAUSE, "c", BLOCK))
    assert made.frames[0][:2] == [5, b""]
    assert made.frames[1][:2] == [0, b""]
    assert made.frames[0][block] != made.frames[1][block]
    assert scratch.read(made.frames[1][block], 24) == bytes(24)  # type: ignore[arg-type]


def test_zero_frees() -> None:
    dynamic = variables().dynamic(of(Scope.GLOBAL, LONG, LONG))
    assert dynamic.store(7, 1, 0) == 7
    assert dynamic.cells == {1: 7}
    assert dynamic.store(0, 1, 0) == 0
    dynamic.store(0, 2, 0)
    assert dynamic.cells == {}


def test_there_is_room_for_as_many_as_dynvarsize_says_and_drops_are_counted() -> None:
    made = variables(10 * (48 + 16 + 8 + 64))  # header, one key, value, bucket
    dynamic = made.dynamic(of(Scope.GLOBAL, LONG, LONG))
    for key in range(15):
        dynamic.store(key + 1, key, key % 2)
    assert list(dynamic.cells) == list(range(10))
    assert made.drops == {0: 3, 1: 2}
    dynamic.store(99, 5, 0)  # what is there can be changed
    dynamic.store(0, 3, 0)
    dynamic.store(1, 77, 0)
    assert sum(made.drops.values()) == 5
    assert (dynamic.cells[5], dynamic.cells[77]) == (99, 1)


def test_all_take_as_much_room_as_the_largest() -> None:
    made = variables(4096)
    small = made.dynamic(Variable(Scope.THREAD, "small", LONG))
    made.dynamic(Variable(Scope.GLOBAL, "large", STRING, (STRING, STRING)))
    for thread in range(100):
        small.store(1, thread, 0)
    assert len(small.cells) == 4096 // (48 + 2 * (16 + 256) + 256 + 64)


def test_a_block_is_made_when_it_is_first_used_if_there_is_room() -> None:
    made = variables(48 + 16 + 24 + 64)
    dynamic = made.dynamic(of(Scope.THREAD, BLOCK))
    assert dynamic.block(1, 0) == dynamic.block(1, 0) != 0
    assert dynamic.block(2, 3) == 0
    assert made.drops == {3: 1}
