"""`python -m docs.generate`: write docs/reference and docs/man from the code."""

import argparse
from pathlib import Path

from docs.generate import dlang, error_tags, man, markdown, python, refused_sites
from docs.generate.commands import ROOT, commands


def documents() -> dict[Path, str]:
    """Every generated document: its path and its text."""
    texts = commands()
    reference, manuals = ROOT / "docs" / "reference", ROOT / "docs" / "man"
    refusals = error_tags.refusals()
    tags = dlang.tags(one.tag for one in refusals)
    names = [text.name for text in texts]
    sections = [
        ("Actions", dlang.actions()),
        ("Subroutines", dlang.subroutines()),
        ("Aggregations", dlang.aggregations()),
    ]
    reasons = [("Refused", refused_sites.refused()), ("Deferred", refused_sites.deferred())]
    pages = {
        "index": markdown.commands_page(texts),
        "variables": markdown.language_page("Variables of D", dlang.LEADS["variables"], [("", dlang.variables())]),
        "functions": markdown.language_page(
            "Actions, subroutines and aggregations", dlang.LEADS["functions"], sections
        ),
        "options": markdown.language_page("Options of D", dlang.LEADS["options"], [("", dlang.options())]),
        "providers": markdown.language_page("Providers", dlang.LEADS["providers"], [("", dlang.providers())]),
        "refusals": markdown.language_page("Why a site is refused", dlang.LEADS["refusals"], reasons),
        "python": markdown.python_page(dlang.LEADS["python"], python.groups()),
        "errors": markdown.errors_page(dlang.LEADS["errors"], tags, refusals, error_tags.unreachable()),
    }
    written = {reference / f"{text.name}.md": markdown.command_page(text) for text in texts}
    written |= {reference / f"{name}.md": text for name, text in pages.items()}
    return written | {
        manuals / f"{text.name}.1": man.manual(text, [name for name in names if name != text.name]) for text in texts
    }


def main() -> None:
    """Write them, and remove those of commands that are gone."""
    argparse.ArgumentParser(prog="poe reference", description=(__doc__ or "").partition(": ")[2]).parse_args()
    wanted = documents()
    for folder in {path.parent for path in wanted}:
        folder.mkdir(exist_ok=True)
        for old in set(folder.iterdir()) - set(wanted):
            old.unlink()
    for path, text in wanted.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
