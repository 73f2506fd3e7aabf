"""What is at an address, as an operand."""

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.operands import Operand
from kinst.runtime.dlang.types.conversions import is_string
from kinst.runtime.dlang.types.types import STRING, DType, Dynamic, String, bare
from kinst.targets.c_types import Array, CType, size_of, strip


def in_memory(kind: DType, address: program.Expression, bits: tuple[int, int] | None = None) -> Operand:
    """The thing of type `kind` at an address; `bits` is a bit-field's. Arrays are not lvalues (K&R A7.4.3); strings
    are."""
    if not is_string(kind):
        load = program.Load(kind, address, bits)
        return Operand(kind, load, is_lvalue=not isinstance(bare(kind), Array))
    characters = strip(c_type(kind))
    text = program.StringOf(STRING, address, size_of(characters))
    return Operand(STRING, text, is_lvalue=True, memory=program.Load(characters, address))


def c_type(kind: DType) -> CType:
    """The type of something in memory, which is never one of D's own types."""
    assert not isinstance(kind, String | Dynamic)
    return kind
