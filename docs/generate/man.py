"""What there is to say of a command -> its manual page, in man(7)'s macros."""

from docs.generate.commands import PROJECT, CommandText, OptionText


def manual(command: CommandText, others: list[str]) -> str:
    """The page of section 1. `others`: the commands that it refers to."""
    title = f'.TH {command.name.upper()} 1 "" "{PROJECT["name"]} {PROJECT["version"]}" "User Commands"'
    # A line that begins with a macro must be one; everything else goes through _text.
    lines = [
        '.\\" `poe reference` writes this page from the code.',
        title,
        ".SH NAME",
        f"{_text(command.name)} \\- {_text(command.summary)}",
        ".SH SYNOPSIS",
        f".B {_text(command.name)}",
        _text(command.usage),
        ".SH DESCRIPTION",
    ]
    for number, paragraph in enumerate(command.paragraphs):
        lines += ([".PP"] if number else []) + [_text(paragraph)]
    lines.append(".SH OPTIONS")
    for group, options in command.groups:
        lines.append(f".SS {_text(group)}")
        for option in options:
            lines += [".TP", f"\\fB{_text(option.spelling)}\\fR", _text(_described(option))]
    if command.examples:
        lines.append(".SH EXAMPLES")
        for example in command.examples:
            lines += [".TP", f"\\fB{_text(example.line)}\\fR", _text(example.says) + "."]
    lines += [".SH EXIT STATUS", "0 done, 1 error, 2 a wrong command line.", ".SH SEE ALSO"]
    lines.append(", ".join(f"\\fB{_text(name)}\\fR(1)" for name in others))
    return "\n".join(lines) + "\n"


def _described(option: OptionText) -> str:
    words = f" One of {', '.join(option.words)}." if option.is_choice_untold else ""
    return option.text + words


def _text(text: str) -> str:
    """Text that roff takes as it is: it neither hyphenates options nor sees a request in it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{text}" if text.startswith(".") else text
