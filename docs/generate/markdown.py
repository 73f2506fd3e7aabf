"""What the code knows -> pages of docs/reference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress

from docs.generate.commands import CommandText, OptionText
from docs.generate.dlang import Entry
from docs.generate.error_tags import Refusal
from docs.generate.python import Docs, Name

NOTE = "<!-- `poe reference` writes this page from the code. -->\n"


def command_page(command: CommandText) -> str:
    """A page on one command."""
    parts = [f"# {command.name}\n{NOTE}", *(f"{_escaped(text)}\n" for text in command.paragraphs)]
    parts.append(f"```text\n{command.name} {command.usage}\n```\n")
    if command.examples:
        rows = ((_code(example.line), _escaped(example.says)) for example in command.examples)
        parts += ["## Examples\n", _table(("command", "what it does"), rows)]
    for group, options in command.groups:
        rows = ((_code(option.spelling), _option(option)) for option in options)
        parts += [f"## {group}\n", _table(("option", "what it does"), rows)]
    return "\n".join(parts)


def commands_page(commands: Sequence[CommandText]) -> str:
    """The list of all commands."""
    rows = ((f"[{command.name}]({command.name}.md)", _escaped(command.summary)) for command in commands)
    text = "Exit status of all: 0 done, 1 error, 2 a wrong command line. Each has a page for `man`, too.\n"
    return "\n".join((f"# Commands\n{NOTE}", text, _table(("command", "what it does"), rows)))


def language_page(title: str, lead: str, sections: Sequence[tuple[str, Sequence[Entry]]]) -> str:
    """A page on names of D: `sections` have a heading, or "" where the page has one only."""
    parts = [f"# {title}\n{NOTE}", f"{lead}\n"]
    for heading, entries in sections:
        if heading:
            parts.append(f"## {heading}\n")
        has_kind, has_example = any(one.kind for one in entries), any(one.example for one in entries)
        keep = [True, has_kind, True, has_example]
        rows = ([_code(one.name), _code(one.kind), _cell(one.says), _example(one)] for one in entries)
        head, *body = (list(compress(row, keep)) for row in (["name", "type", "what it is", "example"], *rows))
        parts.append(_table(head, body))
    return "\n".join(parts)


def errors_page(lead: str, tags: Sequence[Entry], refusals: Sequence[Refusal], unreachable: Sequence[str]) -> str:
    """A page on the tags of errors: for each what it means, a program that has it, and what is said of that."""
    parts = [f"# Error tags\n{NOTE}", f"{lead}\n"]
    for tag, one in zip(tags, refusals, strict=True):
        parts.append(f"## {tag.name}\n\n{tag.says}\n\n```d\n{one.program}\n```\n\n{_code(one.message)}\n")
    names = ", ".join(map(_code, unreachable))
    parts.append(f"## Tags that no program can have here\n\n{names}\n")
    return "\n".join(parts)


def python_page(lead: str, groups: Mapping[str, Sequence[Name]]) -> str:
    """A page on what a Python program imports."""
    parts = [f"# Python\n{NOTE}", f"{lead}\n"]
    for title, names in groups.items():
        parts += [f"## {title}\n", *(part for name in names for part in _name(name))]
    return "\n".join(parts)


def _name(name: Name) -> Iterator[str]:
    yield f"### {name.name}\n"
    yield from _signature(name.signature)
    yield from _docs(name.docs)
    if name.values:
        rows = [(_code(field), _code(kind), _text(says)) for field, kind, says in name.values]
        kind = "value" if name.values[0][1].startswith("'") else "type"
        yield _table(("name", kind, "what it is"), rows)
    for member in name.members:
        if not member.home:
            yield f"#### {name.name}.{member.name}\n"
            yield from _signature(member.signature if member.signature != member.name else "")
            yield from _docs(member.docs)
    for home in dict.fromkeys(member.home for member in name.members if member.home):
        names = ", ".join(_code(member.name) for member in name.members if member.home == home)
        yield f"As in [{home}](#{home.lower()}): {names}.\n"


def _signature(text: str) -> Iterator[str]:
    if text:
        yield f"```python\n{text}\n```\n"


def _docs(docs: Docs) -> Iterator[str]:
    yield from (f"{_text(' '.join(one.split()))}\n" for one in docs.says.split("\n\n"))
    if docs.arguments:
        yield "".join(f"- `{name}`: {_text(says)}\n" for name, says in docs.arguments)
    if docs.returns:
        yield f"Returns: {_text(docs.returns)}\n"
    if docs.errors:
        yield "Raises:\n"
        yield "".join(f"- `{name}`: {_text(says)}\n" for name, says in docs.errors)
    if docs.example:
        yield f"```pycon\n{docs.example}\n```\n"


def _text(text: str) -> str:
    """The text of a docstring as Markdown: what is between backquotes stays as it is."""
    parts = text.split("`")
    return "`".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _option(option: OptionText) -> str:
    words = f" One of {', '.join(map(_code, option.words))}." if option.is_choice_untold else ""
    return _escaped(option.text) + words


def _example(entry: Entry) -> str:
    return entry.example if "`" in entry.example else _code(entry.example)


def _code(text: str) -> str:
    """Code in a cell of a table. A backquote of D's needs a longer fence."""
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{_cell(text)}{pad}{fence}" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "\\n")


def _escaped(text: str) -> str:
    """Plain text as Markdown."""
    for character in "\\*_<>[]|`":
        text = text.replace(character, f"\\{character}")
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
