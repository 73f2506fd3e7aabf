"""`provider name { probe name(arguments) : (translated arguments); };`: checked, and kept in `ProgramState`."""

from typing import Final

from kinst.runtime.dlang.check.checking import Checking
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.conversions import are_compatible, is_argument_compatible, is_void
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import DType, bare
from kinst.targets.c_types import Pointer

_LONGEST_PROVIDER: Final = 63
_LONGEST_PROBE: Final = 63
_MOST_ARGUMENTS: Final = 255

Probes = dict[str, tuple[DType, ...]]


def declare(node: tree.ProviderDeclaration, checking: Checking) -> None:
    """Store a provider's probes. A provider that is declared twice must have the same probes both times. Raises DError:
    D_PROV_BADNAME, D_PROV_PRARGLEN, D_PROV_PRDUP, D_PROV_PRXLATOR, D_PROV_INCOMPAT."""
    _check_provider_name(node)
    probes: Probes = {}
    for probe in node.probes:
        name = _probe_name(probe)
        if name in probes:
            raise DError("D_PROV_PRDUP", f"probe redeclared: {node.name}:::{name}", probe.span)
        probes[name] = _arguments(probe, name, checking)
    known = checking.program.providers.get(node.name)
    if known is not None:
        _check_same(node, known, probes)
    else:
        _check_existing(node, probes, checking)
        checking.program.providers[node.name] = probes


# -- names ------------------------------------------------------------------------------------------------------------


def _check_provider_name(node: tree.ProviderDeclaration) -> None:
    if "`" in node.name:
        raise _bad_name(f"provider name may not contain scoping operator: {node.name}", node.span)
    if len(node.name) > _LONGEST_PROVIDER:
        raise _bad_name(f"provider name may not exceed {_LONGEST_PROVIDER} characters: {node.name}", node.span)
    if node.name[-1:].isdigit():
        raise _bad_name(f"provider name may not end with a digit: {node.name}", node.span)


def _probe_name(node: tree.ProviderProbe) -> str:
    """The probe's name as descriptions spell it: two underscores stand for a hyphen."""
    name = node.name.replace("__", "-")
    if "`" in name:
        raise _bad_name(f"probe name may not contain scoping operator: {name}", node.span)
    if len(name) > _LONGEST_PROBE:
        raise _bad_name(f"probe name may not exceed {_LONGEST_PROBE} characters: {name}", node.span)
    return name


def _bad_name(text: str, span: Span) -> DError:
    return DError("D_PROV_BADNAME", text, span)


# -- arguments --------------------------------------------------------------------------------------------------------


def _arguments(node: tree.ProviderProbe, name: str, checking: Checking) -> tuple[DType, ...]:
    """The types of args[], after translation where the declaration asks for it."""
    native = _types(node.arguments, checking)
    if node.translated is None:
        translated = native
    else:
        translated = _types(node.translated, checking)
        for place, parameter in enumerate(node.translated[: len(translated)]):
            source = _source(node, parameter, place, len(native))
            if source is not None:
                _check_translated(node, name, parameter, source, checking)
    if max(len(native), len(translated)) > _MOST_ARGUMENTS:
        text = f"probe {name} may not have more than {_MOST_ARGUMENTS} parameters"
        raise DError("D_PROV_PRARGLEN", text, node.span)
    return translated


def _types(parameters: tuple[tree.Parameter, ...], checking: Checking) -> tuple[DType, ...]:
    """The types of the parameters; `(void)` means none."""
    kinds = tuple(checking.type(parameter.type) for parameter in parameters)
    return () if len(kinds) == 1 and is_void(kinds[0]) else kinds


def _source(node: tree.ProviderProbe, parameter: tree.Parameter, place: int, count: int) -> tree.TypeName | None:
    """The native argument of which an argument is translated: the one of the same name, else the one at the same
    index."""
    for argument in node.arguments:
        if parameter.name and argument.name == parameter.name:
            return argument.type
    if parameter.name and any(argument.name for argument in node.arguments):
        text = f"{node.name}( ) translated argument {parameter.name} is not an argument of the probe"
        raise DError("D_DECL_PROTO_NAME", text, node.span)
    return node.arguments[place].type if place < count else None


def _check_translated(
    node: tree.ProviderProbe, name: str, parameter: tree.Parameter, source: tree.TypeName, checking: Checking
) -> None:
    output, given = checking.type(parameter.type), checking.type(source)
    if is_argument_compatible(output, given) or _has_translator(node, parameter.type, source, checking):
        return
    text = f"translator for probe {name} from {describe(given)} to {describe(output)} is not defined"
    raise DError("D_PROV_PRXLATOR", text, node.span)


def _has_translator(node: tree.ProviderProbe, output: tree.TypeName, source: tree.TypeName, checking: Checking) -> bool:
    """Whether a program could translate it with xlate. For a struct argument a pointer to the struct is tried."""
    span = node.span
    operand: tree.Expression = tree.IntegerLiteral(span, 0, "int", "0")
    if isinstance(bare(checking.type(source)), Pointer):
        operand = tree.Cast(span, source, operand)
    else:
        declarator = tree.Declarator(span, "", (*source.declarator.parts, tree.PointerPart(())))
        pointer = tree.TypeName(span, source.specifiers, declarator)
        operand = tree.Unary(span, "*", tree.Cast(span, pointer, operand))
    try:
        checking.expression(tree.Translate(span, output, operand))
    except DError as error:
        return error.tag == "D_CG_DYN"  # the translation exists; it merely has no value without a member
    return True


# -- declared before --------------------------------------------------------------------------------------------------


def _check_same(node: tree.ProviderDeclaration, known: Probes, probes: Probes) -> None:
    spans = {_probe_name(probe): probe.span for probe in node.probes}
    for name, kinds in known.items():
        if name not in probes:
            raise _incompatible(node.name, f"probe {name} is not declared any more", node.span)
        if len(kinds) != len(probes[name]):
            text = f"probe {node.name}:::{name} had {len(kinds)} arguments, now {len(probes[name])}"
            raise DError("D_PROV_PRARGLEN", text, spans[name])
        if not all(are_compatible(one, other) for one, other in zip(kinds, probes[name], strict=True)):
            raise _incompatible(node.name, f"the arguments of probe {name} are of other types", spans[name])
    for name in probes:
        if name not in known:
            raise _incompatible(node.name, f"probe {name} was not declared before", spans[name])


def _check_existing(node: tree.ProviderDeclaration, probes: Probes, checking: Checking) -> None:
    """Refuse to give other probes to a provider that the session already has."""
    if not _matches(f"{node.name}:::", checking):
        return
    for name in probes:
        if not _matches(f"{node.name}:::{name}", checking):
            raise _incompatible(node.name, f"it has no probe {name}", node.span)


def _matches(description: str, checking: Checking) -> bool:
    try:
        return checking.context.probes.match(description).count > 0
    except DError:
        return False


def _incompatible(provider: str, what: str, span: Span) -> DError:
    return DError("D_PROV_INCOMPAT", f"provider interface mismatch: {provider}: {what}", span)
