"""Translators: structs whose members are computed from another value, each where a program uses it (DTrace Guide,
"Translators")."""

from dataclasses import replace

from kinst.runtime.dlang import program
from kinst.runtime.dlang.check.compatibility import is_accepted
from kinst.runtime.dlang.check.converting import cast
from kinst.runtime.dlang.check.memory import in_memory
from kinst.runtime.dlang.check.operands import (
    TRANSLATED,
    Operand,
    Translation,
    Translator,
    is_free,
    shifted,
    value_operand,
)
from kinst.runtime.dlang.check.reader import Reader
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import SIZE, DType, Dynamic, String, bare
from kinst.targets.c_types import Aggregate, Pointer
from kinst.targets.nearest import nearest


def declare(reader: Reader, node: tree.Translator) -> None:
    """Check a translator. As in libdtrace, the expressions of its members may use the translator itself."""
    source, output = reader.type(node.input), reader.type(node.output)
    operand = Operand(source, program.Bound(source, 0))
    if isinstance(bare(output), Aggregate) and reader.translators.find(operand, output, exact=True) is not None:
        text = f"translator from {describe(source)} to {describe(output)} has already been declared"
        raise DError("D_XLATE_REDECL", text, node.span)
    plain = bare(output)
    if not isinstance(plain, Aggregate) or plain.members is None or isinstance(output, String | Dynamic):
        raise DError("D_XLATE_SOU", "translator output type must be a complete struct or union", node.output.span)
    members: dict[str, tree.TranslatorMember] = {}
    for member in node.members:
        members.setdefault(member.name, member)
    translator = Translator(output, plain, source, node.name, members)
    for member in node.members:
        _check(reader, translator, member)
    reader.translators.declared.append(translator)


def _check(reader: Reader, translator: Translator, member: tree.TranslatorMember) -> None:
    if translator.aggregate.find(member.name) is None:
        hint = nearest(member.name, translator.aggregate.names())
        text = f"translator member {member.name} is not a member of {describe(translator.aggregate)}{hint}"
        raise DError("D_XLATE_MEMB", text, member.span)
    _member_value(reader, translator, member, program.Bound(translator.input, 0))


def _member_value(
    reader: Reader, translator: Translator, member: tree.TranslatorMember, source: program.Expression
) -> Operand:
    """A member's expression as it is written, with `source` in place of the translator's parameter."""
    found = translator.aggregate.find(member.name)
    assert found is not None
    parameter = Operand(translator.input, source, is_lvalue=True)
    with reader.inlines.parameters({translator.name: parameter}):
        operand = reader.operand(member.value)
    if not is_accepted(found.type, operand):
        text = f'"{describe(found.type)}" = "{describe(operand.type)}"'
        raise DError(
            "D_XLATE_INCOMPAT",
            f"translator member {member.name} definition uses incompatible types: {text}",
            member.span,
        )
    return operand


# -- uses -------------------------------------------------------------------------------------------------------------


def translate(reader: Reader, node: tree.Translate) -> Operand:
    """`xlate <type>(operand)`. Raises DError: D_XLATE_*."""
    output = reader.type(node.type)
    operand = reader.operand(node.operand)
    plain = bare(output)
    target: DType = plain.target if isinstance(plain, Pointer) else plain
    translator = reader.translators.find(operand, target) if isinstance(bare(target), Aggregate) else None
    if translator is None or operand.action:
        text = f'cannot translate from "{describe(operand.type)}" to "{describe(output)}"'
        raise DError("D_XLATE_NONE", text, node.span)
    translation = Translation(translator, operand.value, isinstance(plain, Pointer))
    return Operand(TRANSLATED, operand.value, translation=translation)


def translated_member(reader: Reader, node: tree.MemberAccess, translation: Translation) -> Operand:
    """A member of a translation: the translator's expression for it, of the member's type."""
    translator = translation.translator
    member = translator.members.get(node.name)
    if member is None:
        hint = nearest(node.name, translator.members)
        text = f"translator does not define conversion for member: {node.name}{hint}"
        raise DError("D_XLATE_NOCONV", text, node.span)
    if node.through_pointer != translation.is_pointer:
        tag = "D_OP_PTR" if node.through_pointer else "D_OP_SOU"
        symbol = "->" if node.through_pointer else "."
        raise DError(
            tag, f"operator {symbol} cannot be applied to a translation to {describe(translator.output)}", node.span
        )
    return _bound_member(reader, translation, member)


def _bound_member(reader: Reader, translation: Translation, member: tree.TranslatorMember) -> Operand:
    found = translation.translator.aggregate.find(member.name)
    assert found is not None
    source = translation.value
    if is_free(source):
        operand = _member_value(reader, translation.translator, member, source)
        is_done = operand.translation is not None or operand.constant is not None
        return operand if is_done else value_operand(cast(operand.value, found.type))
    number = reader.fresh()
    operand = _member_value(reader, translation.translator, member, program.Bound(source.type, number))
    if operand.constant is not None:
        return operand
    if operand.translation is not None:  # its source depends on ours
        inner = program.Bind(operand.translation.value.type, number, source, operand.translation.value)
        return replace(operand, translation=replace(operand.translation, value=inner))
    body = cast(operand.value, found.type)
    return value_operand(program.Bind(body.type, number, source, body))


def copied(reader: Reader, translation: Translation, span: Span) -> program.Expression:
    """A struct in scratch memory, with all the members that the translator defines."""
    translator = translation.translator
    source, storage = reader.fresh(), reader.fresh()
    address = program.Bound(translator.output, storage)
    body: program.Expression = address
    for member in reversed(translator.members.values()):
        found = translator.aggregate.find(member.name)
        assert found is not None
        operand = _member_value(reader, translator, member, program.Bound(translation.value.type, source))
        bits = None if found.bit_size is None else (found.bit_offset, found.bit_size)
        target = in_memory(found.type, shifted(address, found.offset, span), bits).target
        assert isinstance(target, program.Load)
        store = program.Assign(target.type, target, cast(operand.value, found.type))
        body = program.Comma(translator.output, store, body)
    size = program.Integer(SIZE, translator.aggregate.size)
    allocated = program.Call(translator.output, "alloca", (size,))
    inner = program.Bind(translator.output, source, translation.value, body)
    return program.Bind(translator.output, storage, allocated, inner)
