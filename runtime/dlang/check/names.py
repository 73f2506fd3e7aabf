"""Names and indexes: what a word means, and what an index in brackets selects."""

from dataclasses import replace

from kinst.runtime.dlang import program
from kinst.runtime.dlang.builtins import ARRAYS, FUNCTIONS, THREADS, VARIABLES
from kinst.runtime.dlang.check import stability
from kinst.runtime.dlang.check.declarations import inlines
from kinst.runtime.dlang.check.declarations.variables import element, scoped_entry, undefined
from kinst.runtime.dlang.check.declared import entry_operand
from kinst.runtime.dlang.check.memory import c_type, in_memory
from kinst.runtime.dlang.check.operands import TRANSLATED, Operand, Translation, Use
from kinst.runtime.dlang.check.operations.members import dereferenced
from kinst.runtime.dlang.check.operations.operators import additive
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.program import Scope
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types.conversions import is_void
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import UINT64, UINTPTR, DType, bare
from kinst.runtime.dlang.versions import is_later
from kinst.targets.c_types import Array, Function, Pointer
from kinst.targets.nearest import nearest


def global_name(reader: Reader, node: tree.Name, use: Use) -> Operand:
    """A bare word: a parameter, a builtin, an inline, a variable, an enumerator."""
    _require_attributes(reader, node)
    predefined = _predefined(reader, node)
    if predefined is not None:
        return predefined
    entry = reader.variables.find(Scope.GLOBAL, node.name)
    if entry is None and use is Use.CREATE:
        entry = reader.variables.create(Scope.GLOBAL, node.name)
    if entry is None:
        enumerator = reader.inlines.enumerator(node.name)
        if enumerator is not None:
            return enumerator
        hint = nearest(node.name, (*VARIABLES, *ARRAYS, *reader.inlines.known(), *reader.variables.assigned()))
        raise DError("D_IDENT_UNDEF", f"failed to resolve {node.name}: Unknown variable name{hint}", node.span)
    if entry.is_array:
        raise bad_reference(node, "associative array", "a scalar variable")
    if entry.type is None and use is Use.READ:
        raise undefined(reader, entry, node.span)
    return entry_operand(entry)


def _require_attributes(reader: Reader, node: tree.Name) -> None:
    """Compare the attributes that a pragma gave a name with -x amin. Raises DError D_ATTR_MIN."""
    attributes = reader.attributes.get(node.name)
    if attributes is not None:
        stability.require(reader.context, node.name, attributes, node.span)


def _predefined(reader: Reader, node: tree.Name) -> Operand | None:
    """A name that D defines: a builtin variable, a constant, an inline or a function. None for others."""
    name = node.name
    # A parameter hides every other name. Enumerators of the image are not here: `global_name` tries them last, if the
    # program has no variable of that name.
    found = reader.inlines.parameter(name)
    if found is not None:
        return found
    is_own = not is_later(name, reader.context.options)
    if is_own and name in VARIABLES:
        kind = _thread_pointer(reader, node) if name == "curthread" else VARIABLES[name]
        return Operand(kind, program.Builtin(kind, name), is_lvalue=True, is_variable=True)
    inline = reader.inlines.defined.get(name)
    if inline is not None:
        if inline.keys is not None:
            raise bad_reference(node, "inline array", "a scalar variable")
        return inlines.value_of(reader, inline)
    if is_own and (name in ARRAYS or name in FUNCTIONS):
        raise bad_reference(node, "array" if name in ARRAYS else "function", "a scalar variable")
    return reader.inlines.constant(name)


def _thread_pointer(reader: Reader, node: tree.Name) -> DType:
    """The type of curthread: a pointer to the struct that the image's kernel has for a thread."""
    stability.require(reader.context, "scalar curthread", stability.THREAD, node.span)
    found = (reader.scope.lookup(name) for name in THREADS)
    thread = next((kind for kind in found if kind is not None), None)
    return VARIABLES["curthread"] if thread is None else Pointer(c_type(thread))


def bad_reference(node: tree.Name, what: str, wanted: str) -> DError:
    """The error for a name that is used as a different kind of thing."""
    return DError("D_IDENT_BADREF", f"{what} '{node.name}' may not be referenced as {wanted}", node.span)


def external_name(reader: Reader, node: tree.ExternalName) -> Operand:
    """`name and module`name: a symbol of the traced image. Raises DError: D_IDENT_UNDEF, D_SYM_NOTYPES."""
    shown = f"{node.module}`{node.name}"
    symbol = reader.context.types.symbol(node.name, node.module)
    if symbol is None:
        raise DError("D_IDENT_UNDEF", f"failed to resolve {shown}: {_why_no_symbol(reader, node)}", node.span)
    stability.require(reader.context, f"symbol {symbol.module}`{symbol.name}", stability.SYMBOL, node.span)
    if symbol.type is None:
        text = f"no symbolic type information is available for {symbol.module}`{symbol.name}"
        raise DError("D_SYM_NOTYPES", text, node.span)
    if isinstance(symbol.type, Function):
        value = program.Linked(symbol.type, symbol.address, symbol.module)
        return Operand(symbol.type, value, is_lvalue=True, size=symbol.size)
    result = in_memory(symbol.type, program.Linked(UINTPTR, symbol.address, symbol.module))
    return replace(result, is_lvalue=True, size=symbol.size or None)


def _why_no_symbol(reader: Reader, node: tree.ExternalName) -> str:
    known = reader.context.types.symbol(node.name) if node.module else None
    if known is not None:
        return f"No module {node.module}; nearest {known.module.replace('-', '_')}`{node.name}"
    hint = nearest(node.name, (one.name for one in reader.context.types.symbols()))
    return f"No symbol table entry for this name{hint}"


# -- indexes ----------------------------------------------------------------------------------------------------------


def index(reader: Reader, node: tree.Index, use: Use) -> Operand:
    """base[indexes]: an element of an associative array, or *(base + index)."""
    match node.base:
        case tree.Name() as name:
            found = _index_of_name(reader, node, name, use)
        case tree.ScopedName() as name:
            found = _index_of_scoped(reader, node, name, use)
        case tree.AggregationName(name=word):
            text = f"improper attempt to reference @{word} as a multi-dimensional array"
            raise DError("D_AGG_MDIM", text, node.span)
        case _:
            found = None
    return found if found is not None else _c_element(reader, node, use)


def _index_of_name(reader: Reader, node: tree.Index, name: tree.Name, use: Use) -> Operand | None:
    word = name.name
    _require_attributes(reader, name)
    is_own = not is_later(word, reader.context.options)
    if reader.inlines.parameter(word) is not None or (is_own and word in VARIABLES):
        return None
    if is_own and word in ARRAYS:
        return _builtin_element(reader, node, word)
    if is_own and word in FUNCTIONS:
        raise bad_reference(name, "function", "an associative array")
    inline = reader.inlines.defined.get(word)
    if inline is not None:
        return None if inline.keys is None else inlines.expanded(reader, inline, node)
    return None if reader.inlines.constant(word) is not None else _array_element(reader, node, name, use)


def _array_element(reader: Reader, node: tree.Index, name: tree.Name, use: Use) -> Operand | None:
    word = name.name
    entry = reader.variables.find(Scope.GLOBAL, word)
    if entry is None:
        entry = reader.variables.create(Scope.GLOBAL, word)
        entry.become_array()
    if entry.is_array:
        return element(reader, entry, node, use)
    if entry.type is None:
        raise bad_reference(name, "scalar variable", "an associative array")
    return None


def _index_of_scoped(reader: Reader, node: tree.Index, name: tree.ScopedName, use: Use) -> Operand | None:
    entry = scoped_entry(reader, name)
    if entry.type is None and not entry.is_array:
        if entry.scope is Scope.CLAUSE:
            text = f"local variables may not be used as associative arrays: {entry.name}"
            raise DError("D_ARR_LOCAL", text, node.span)
        entry.become_array()
    return element(reader, entry, node, use) if entry.is_array else None


def _c_element(reader: Reader, node: tree.Index, use: Use) -> Operand:
    base = reader.operand(node.base)
    operands = [reader.operand(part) for part in node.indexes]
    if len(operands) != 1:
        raise DError("D_ARR_BADREF", "cannot access a scalar array as an associative array", node.span)
    _check_bounds(node, base.type, operands[0].constant, is_address=use is Use.ADDRESS)
    total = additive(node, "+", base, operands[0])
    return dereferenced(node, total)


def _check_bounds(node: tree.Index, kind: DType, number: int | None, *, is_address: bool) -> None:
    """Refuse a constant index outside of an array; an address may be that of its end. An array of one element may be
    the beginning of a longer one, as in a struct that ends with `data[1]`."""
    length = kind.length if isinstance(kind := bare(kind), Array) else None
    if number is not None and length is not None and length > 1 and not 0 <= number < length + is_address:
        raise DError("D_ARR_BADREF", f"index {number} is outside of an array of {length}", node.span)


# -- args, regs, uregs ------------------------------------------------------------------------------------------------


def _builtin_element(reader: Reader, node: tree.Index, name: str) -> Operand:
    number = _constant_index(reader, node, name)
    if name == "args":
        return _argument(reader, node, number)
    if number < 0:
        raise DError("D_REGS_IDX", f"index {number} is out of range for array {name}", node.span)
    value = program.Builtin(UINT64, name, program.Integer(UINT64, number))
    return Operand(UINT64, value, is_lvalue=True, is_variable=True)


def _constant_index(reader: Reader, node: tree.Index, name: str) -> int:
    operands = [reader.operand(part) for part in node.indexes]
    if len(operands) != 1:
        passed = f"{len(operands)} arg{'' if len(operands) == 1 else 's'} passed, 1 expected"
        raise DError("D_PROTO_LEN", f"{name}[ ] prototype mismatch: {passed}", node.span)
    if operands[0].constant is None:
        text = f"{name}[ ] argument #1 is incompatible with prototype:"
        kinds = f"\n\tprototype: integer constant\n\t argument: {describe(operands[0].type)}"
        raise DError("D_PROTO_ARG", text + kinds, node.span)
    return operands[0].constant


def _argument(reader: Reader, node: tree.Index, number: int) -> Operand:
    matched = reader.matched
    if matched is None:
        raise DError("D_ARGS_NONE", "args[ ] may not be referenced outside of a probe clause", node.span)
    if matched.is_mixed or not matched.count:
        text = f"probe description {matched.description} matches an unstable set of probes"
        raise DError("D_ARGS_MULTI", f"args[ ] may not be referenced because {text}", node.span)
    kinds = matched.arguments or ()
    if not 0 <= number < len(kinds):
        why = f": {matched.obstacle}" if matched.obstacle else ""
        text = f"index {number} is out of range for {matched.description} args[ ]{why}"
        raise DError("D_ARGS_IDX", text, node.span)
    kind = kinds[number]
    if is_void(kind):
        raise DError("D_ARGS_TYPE", f"failed to resolve native type for args[{number}]", node.span)
    value = program.Builtin(kind, "args", program.Integer(UINT64, number))
    operand = Operand(kind, value, is_lvalue=True, is_variable=True)
    shown = matched.translated(number)
    output = reader.scope.lookup(shown) if shown else None
    translator = None if output is None else reader.translators.find(operand, output)
    if translator is None:
        return operand
    return Operand(TRANSLATED, value, translation=Translation(translator, value, is_pointer=True))
