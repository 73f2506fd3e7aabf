"""A number and a noun -> words for a message."""


def counted(number: int, noun: str) -> str:
    """``1 site``, ``12,345 sites``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"
