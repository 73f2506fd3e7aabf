"""`#pragma D ...`: options, and the stability and versions that programs give their own names (dt_pragma.c)."""

from itertools import islice
from typing import Final

from kinst.runtime.dlang import versions
from kinst.runtime.dlang.check.checking import Checking
from kinst.runtime.dlang.context import OptionValues
from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError

_STABILITIES: Final = frozenset(
    {"Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"}
)
_CLASSES: Final = frozenset({"Unknown", "CPU", "Platform", "Group", "ISA", "Common"})
_PARTS: Final = frozenset({"provider", "module", "function", "name", "args"})
_LARGEST: Final = (255, 4095, 4095)  # major, minor, micro
_MOST_SYMBOLS: Final = 10_000_000  # how many are searched for a module's name


def apply(node: tree.Pragma, checking: Checking) -> None:
    """Apply a pragma. Options were set when they were read, so they do nothing here. Raises DError: D_PRAGMA_MALFORM,
    D_PRAGMA_INVAL, D_PRAGMA_SCOPE, D_PRAGMA_DEPEND, D_PRAGERR."""
    match node.kind:
        case "option":
            pass
        case "attributes":
            _attributes(node, checking)
        case "binding":
            _binding(node, checking)
        case "depends_on":
            _depends_on(node, checking)
        case "error":
            raise DError("D_PRAGERR", f"#error: {' '.join(node.words)}", node.span)
        case kind:
            raise DError("D_PRAGMA_INVAL", f"invalid D pragma: {kind}", node.span)


def finish(checking: Checking) -> None:
    """Check, at the end of a program, that each name in a pragma was defined. Raises DError: D_PRAGMA_UNUSED."""
    awaited = checking.program.awaited
    while awaited:
        name, (kind, span) = awaited.popitem()
        if name not in checking.program.providers and not checking.reaches(tree.Name(span, name)):
            raise DError("D_PRAGMA_UNUSED", f"unused #pragma {kind}: {name} is not defined", span)


def _malformed(node: tree.Pragma, shape: str) -> DError:
    return DError("D_PRAGMA_MALFORM", f"malformed #pragma {node.kind} {shape}", node.span)


def set_option(node: tree.Pragma, options: OptionValues) -> None:
    """Apply `#pragma D option name=value` while the program is parsed: it is in effect from there on. Other pragmas are
    left for `apply`. Raises DError D_PRAGMA_OPTSET."""
    if node.kind != "option":
        return
    name, equals, value = node.words[0].partition("=")
    try:
        options.set_by_program(name, value if equals else None)
    except DError as error:
        raise DError(error.tag, error.message, error.span or node.span) from error


# -- about names ------------------------------------------------------------------------------------------------------


def _attributes(node: tree.Pragma, checking: Checking) -> None:
    """`attributes Stability/Stability/Class name`, or `... provider name part`."""
    if len(node.words) < 2:
        raise _malformed(node, "<attributes> <ident>")
    stabilities = node.words[0].split("/")
    if len(stabilities) != 3 or not {*stabilities[:2]} <= _STABILITIES or stabilities[2] not in _CLASSES:
        raise DError("D_PRAGMA_INVAL", f"invalid attributes specified by #pragma {node.kind}", node.span)
    if node.words[1] == "provider":
        _provider_attributes(node, checking)
    else:
        _about(node, node.words[1], checking)
        checking.program.attributes[node.words[1]] = node.words[0]


def _provider_attributes(node: tree.Pragma, checking: Checking) -> None:
    if len(node.words) < 4:
        raise _malformed(node, "<attributes> provider <name> <part>")
    name, part = node.words[2:4]
    if part not in _PARTS:
        text = f'invalid component "{part}" in attribute #pragma for provider {name}'
        raise DError("D_PRAGMA_INVAL", text, node.span)
    if name in checking.program.providers:
        return
    if _matches(f"{name}:::", checking):
        raise _out_of_scope(node)
    checking.program.awaited.setdefault(name, (node.kind, node.span))


def _binding(node: tree.Pragma, checking: Checking) -> None:
    """`binding "1.2.3" name`: the version of D that a name came with."""
    if len(node.words) < 2:
        raise _malformed(node, '"version" <ident>')
    found = versions.read(node.words[0])
    if found is None or any(part > most for part, most in zip(found, _LARGEST, strict=True)):
        raise DError("D_PRAGMA_INVAL", f"invalid version string specified by #pragma {node.kind}", node.span)
    _about(node, node.words[1], checking)


def _about(node: tree.Pragma, name: str, checking: Checking) -> None:
    """Store a pragma about one of the program's own names, which may be defined later."""
    if versions.is_own(name, checking.context.options) or name in checking.context.constants:
        raise _out_of_scope(node)
    if not checking.reaches(tree.Name(node.span, name)):
        checking.program.awaited.setdefault(name, (node.kind, node.span))


def _out_of_scope(node: tree.Pragma) -> DError:
    text = f"#pragma {node.kind} cannot modify entity defined outside program scope"
    return DError("D_PRAGMA_SCOPE", text, node.span)


# -- depends_on -------------------------------------------------------------------------------------------------------


def _depends_on(node: tree.Pragma, checking: Checking) -> None:
    """`depends_on provider|module name`: the program does not run without it. Libraries may also say `depends_on
    library name`."""
    if len(node.words) < 2:
        raise _malformed(node, "<class> <name>")
    kind, name = node.words[:2]
    match kind:
        case "provider":
            is_found = name in checking.program.providers or _matches(f"{name}:::", checking)
        case "module":
            is_found = _has_module(name, checking)
        case "library" if checking.program.is_library:
            is_found = name in checking.program.libraries
        case "library":
            text = "main program may not explicitly depend on a library"
            raise DError("D_PRAGMA_DEPEND", text, node.span)
        case _:
            raise DError("D_PRAGMA_INVAL", f"invalid class {kind} specified by #pragma {node.kind}", node.span)
    if not is_found:
        raise DError("D_PRAGMA_DEPEND", f"program requires {kind} {name}", node.span)


def _has_module(name: str, checking: Checking) -> bool:
    symbols = islice(checking.context.types.symbols(), _MOST_SYMBOLS)
    return _matches(f":{name}::", checking) or any(symbol.module == name for symbol in symbols)


def _matches(description: str, checking: Checking) -> bool:
    try:
        return checking.context.probes.match(description).count > 0
    except DError:
        return False
