"""A tree -> the text of a D program with that tree: `-d` prints a program as it is compiled."""

import re
from typing import Final

from kinst.runtime.dlang.syntax import tree, unparse_types
from kinst.runtime.dlang.syntax.unparse_expressions import ASSIGNMENT, constant, expression, string

_PLAIN: Final = re.compile(r'[^\s"]+')


def unparse(unit: tree.Unit) -> str:
    """The text of a program: a line for each statement, and an empty line between clauses. `parse` reads it back,
    except that #line and macros are lost."""
    return "".join(_item(item) for item in unit.items)


def _item(item: tree.TopLevel) -> str:
    match item:
        case tree.Clause():
            return _clause(item)
        case tree.Declaration():
            return unparse_types.declaration(item, constant) + "\n"
        case tree.Inline(value=value):
            return f"{unparse_types.inline_head(item, constant)} = {expression(value, ASSIGNMENT)};\n"
        case tree.Translator():
            return _translator(item)
        case tree.ProviderDeclaration(name=name, probes=probes):
            return f"provider {name} {{\n{''.join(_probe(probe) for probe in probes)}}};\n"
        case tree.Pragma():
            return _pragma(item)


def _clause(clause: tree.Clause) -> str:
    lines = [",\n".join(description.text for description in clause.descriptions)]
    if clause.predicate is not None:
        predicate = expression(clause.predicate)
        lines.append(f"/{' ' if predicate[0] == '*' else ''}{predicate}/")
    if clause.statements is not None:
        lines += ["{", *_statements(clause.statements, "\t"), "}"]
    return "\n".join(lines) + "\n\n"


def _statements(statements: tuple[tree.Statement, ...], indent: str) -> list[str]:
    lines: list[str] = []
    for statement in statements:
        if isinstance(statement, tree.If):
            lines += _if(statement, indent)
        else:
            lines.append(f"{indent}{expression(statement.expression)};")
    return lines


def _if(statement: tree.If, indent: str) -> list[str]:
    lines = [f"{indent}if ({expression(statement.condition)}) {{", *_statements(statement.then, f"{indent}\t")]
    match statement.otherwise:
        case ():
            lines.append(f"{indent}}}")
        case (tree.If() as chained,):
            first, *rest = _if(chained, indent)
            lines += [f"{indent}}} else {first.lstrip()}", *rest]
        case others:
            lines += [f"{indent}}} else {{", *_statements(others, f"{indent}\t"), f"{indent}}}"]
    return lines


def _translator(node: tree.Translator) -> str:
    output, source = (unparse_types.type_name(kind, constant) for kind in (node.output, node.input))
    members = "".join(f"\t{member.name} = {expression(member.value, ASSIGNMENT)};\n" for member in node.members)
    return f"translator {output} < {source} {node.name} > {{\n{members}}};\n"


def _probe(probe: tree.ProviderProbe) -> str:
    text = f"\tprobe {probe.name}({unparse_types.parameters(probe.arguments, constant)})"
    if probe.translated is not None:
        text += f" : ({unparse_types.parameters(probe.translated, constant)})"
    return text + ";\n"


def _pragma(pragma: tree.Pragma) -> str:
    words = [
        word if _PLAIN.fullmatch(word) else string(word.encode("utf-8", "surrogateescape")) for word in pragma.words
    ]
    if pragma.kind == "binding":
        words[0] = string(pragma.words[0].encode("utf-8", "surrogateescape"))
    return " ".join(("#pragma D", pragma.kind, *words)) + "\n"
