"""Probes -> the table of `dtrace -l`; with -v also the stability and arguments of probes and programs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.providers.provider import Probe, Providers
from kinst.runtime.providers.stability import PRIVATE, STABLE, Attributes, Dependency, Stability
from kinst.targets.c_types import CType

_ROW = "%5s %10s %17s %33s %s\n"


Types = Callable[[int], Sequence[str | CType]]


def table(
    providers: Providers, identifiers: Sequence[int], argument_types: Types, *, is_verbose: bool
) -> Iterator[str]:
    """The lines of the table, beginning with the header. `argument_types` gives a probe's types for its identifier."""
    yield _ROW % ("ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
    for identifier in identifiers:
        probe = providers.probe(identifier)
        if probe is not None:
            yield _ROW % (probe.identifier, probe.provider, probe.module, probe.function, probe.name)
            if is_verbose:
                yield "\n" + _details(providers, probe, argument_types(probe.identifier)) + "\n"


def _details(providers: Providers, probe: Probe, types: Sequence[str | CType]) -> str:
    attributes = providers.attributes(probe.identifier)
    parts = []
    if attributes is not None:
        parts.append(_stability("Probe Description", attributes.description(probe.module, probe.function)))
        parts.append(_stability("Argument", attributes.arguments))
    rows = [
        f"\t\targs[{index}]: {kind if isinstance(kind, str) else describe(kind)}\n" for index, kind in enumerate(types)
    ]
    parts.append("\tArgument Types\n" + ("".join(rows) or "\t\tNone\n"))
    return "\n".join(parts)


def _stability(what: str, attributes: Attributes) -> str:
    return (
        f"\t{what} Attributes\n"
        f"\t\tIdentifier Names: {attributes.name.title}\n"
        f"\t\tData Semantics:   {attributes.data.title}\n"
        f"\t\tDependency Class: {attributes.dependency.title}\n"
    )


_THREAD = Attributes(Stability.STABLE, Stability.PRIVATE, Dependency.COMMON)  # it points to a struct of the kernel


def report(title: str, unit: tree.Unit, providers: Providers, identifiers: Iterable[int]) -> str:
    """What -v prints about a program: the lowest stability of its probes, and of the names in its statements (DTrace
    Guide, "Stability": a program is as stable as the least stable thing that it uses)."""
    probes = (_of_probe(providers, identifier) for identifier in identifiers)
    parts = [
        _stability("Minimum Probe Description", reduce(Attributes.weakest, probes, STABLE)),
        _stability("Minimum Statement", reduce(Attributes.weakest, _named(unit), STABLE)),
    ]
    return f"Stability attributes for {title}:\n\n" + "\n".join(parts) + "\n"


def _of_probe(providers: Providers, identifier: int) -> Attributes:
    probe, attributes = providers.probe(identifier), providers.attributes(identifier)
    return STABLE if probe is None or attributes is None else attributes.description(probe.module, probe.function)


def _of_pragmas(unit: tree.Unit) -> Iterator[tuple[str, Attributes]]:
    """The names that `#pragma D attributes` gives a stability, each with that."""
    for item in unit.items:
        if isinstance(item, tree.Pragma) and item.kind == "attributes" and item.words[1] != "provider":
            name, data, dependency = item.words[0].split("/")
            yield (
                item.words[1],
                Attributes(Stability[name.upper()], Stability[data.upper()], Dependency[dependency.upper()]),
            )


def _named(unit: tree.Unit) -> Iterator[Attributes]:
    """The stability of the names in a program. Symbols of the image are private; all of D's own names are stable,
    except that what curthread points to is not; the program's own names have what a pragma gave them."""
    own = dict(_of_pragmas(unit))
    nodes: list[object] = list(unit.items)
    while nodes:
        node = nodes.pop()
        if isinstance(node, tree.ExternalName):
            yield PRIVATE
        elif isinstance(node, tree.Name) and node.name == "curthread":
            yield _THREAD
        elif isinstance(node, tree.Name) and node.name in own:
            yield own[node.name]
        elif isinstance(node, tuple):
            nodes += node
        elif is_dataclass(node):
            nodes += [getattr(node, field.name) for field in fields(node)]
