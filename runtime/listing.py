"""Probes -> the table of `dtrace -l`, and with -v what is known of their stability and arguments."""

from collections.abc import Iterator, Sequence

from kinst.runtime.dlang.type_names import describe
from kinst.runtime.providers.provider import Probe, Providers
from kinst.runtime.providers.stability import Attributes

_ROW = "%5s %10s %17s %33s %s\n"


def table(providers: Providers, identifiers: Sequence[int], *, is_verbose: bool) -> Iterator[str]:
    """Lines of the table, the header first."""
    yield _ROW % ("ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
    for identifier in identifiers:
        probe = providers.probe(identifier)
        if probe is not None:
            yield _ROW % (probe.identifier, probe.provider, probe.module, probe.function, probe.name)
            if is_verbose:
                yield "\n" + _details(providers, probe) + "\n"


def _details(providers: Providers, probe: Probe) -> str:
    attributes = providers.attributes(probe.identifier)
    parts = []
    if attributes is not None:
        parts.append(_stability("Probe Description", attributes.description(probe.module, probe.function)))
        parts.append(_stability("Argument", attributes.arguments))
    types = providers.argument_types(probe.identifier) or ()
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
