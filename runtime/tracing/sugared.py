"""Programs -> their text as they are compiled, with if, else and inlined copies expanded: -d."""

from dataclasses import replace

from kinst.runtime.dlang.syntax import tree, unparse
from kinst.runtime.tracing.programs.matching import Matching
from kinst.runtime.tracing.tracing import Tracing


def sugared(tracing: Tracing) -> str:
    """The programs as they are compiled. Descriptions that mean inlined copies are replaced by those of their
    probes."""
    return "".join(unparse.unparse(_concrete(parsed.unit, tracing.matching)) for parsed in tracing.parsed)


def _concrete(unit: tree.Unit, matching: Matching) -> tree.Unit:
    items = (_concrete_clause(item, matching) if isinstance(item, tree.Clause) else item for item in unit.items)
    return replace(unit, items=tuple(items))


def _concrete_clause(clause: tree.Clause, matching: Matching) -> tree.Clause:
    texts = [(one, text) for one in clause.descriptions for text in matching.concrete(one.text)]
    return replace(clause, descriptions=tuple(replace(one, text=text) for one, text in texts))
