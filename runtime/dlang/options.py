"""`-x name=value`, `#pragma D option name=value` and setopt(): the options of dtrace and what they are set to.

Values are integers and words; sizes are in bytes, rates in ns (docs/facts/dlang.md, Options).
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from kinst.runtime.dlang import versions
from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.syntax.language import LATEST, VERSION
from kinst.targets.nearest import nearest
from kinst.targets.values import dataclass

Value = int | str


class When(Enum):
    """When an option may be set."""

    COMMAND = "command"  # by the user alone: it starts a command of the host
    COMPILE = "compile"
    RUN = "run"  # before the run starts
    ALWAYS = "always"  # setopt() too


@dataclass(frozen=True, slots=True)
class _Option:
    when: When
    read: Callable[[str | None], Value | None]  # None: back to the default
    default: Value


class OptionError(DError):
    """An option or a value that cannot be set. The message is the pragma's; the command line puts `failed to set -x
    name: ` before `why`."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__("D_PRAGMA_OPTSET", message)
        self.why = why


class _BadValueError(ValueError):
    """A value that cannot be read; the text, if any, says why."""


_NOT_THEN: Final = {When.COMMAND: "it starts a command: give -C or -x on the command line"}
_POSITIVE: Final = frozenset({"yes", "enable", "enabled", "true", "on", "set"})
_NEGATIVE: Final = frozenset({"no", "disable", "disabled", "false", "off", "unset"})
_UNITS: Final = {
    "ns": 1, "nsec": 1, "us": 10**3, "usec": 10**3, "ms": 10**6, "msec": 10**6, "s": 10**9, "sec": 10**9,
    "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "hour": 3600 * 10**9, "d": 86400 * 10**9,
    "day": 86400 * 10**9,
}  # fmt: skip
_SIZES: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_LARGEST: Final = (1 << 63) - 1
_LONGEST_STRING: Final = (1 << 32) - 1


def _number_and_unit(text: str | None) -> tuple[int, str]:
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([a-zA-Z]*)", text or "")
    if found is None:
        raise _BadValueError
    digits = found[1]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    value = int(digits, base)
    if value > _LARGEST:
        raise _BadValueError
    return value, found[2].lower()


def _number(text: str | None) -> int | None:
    """A number, or a boolean word in upper or lower case. Without a value the option is on, with an empty one off."""
    if text is None or text.lower() in _POSITIVE:
        return 1
    if text.lower() in _NEGATIVE or not text:
        return None
    value, unit = _number_and_unit(text)
    if unit:
        raise _BadValueError
    return value


def _flag(text: str | None) -> int:
    """A compile-time switch takes no value."""
    if text is not None and text.lower() not in _POSITIVE:
        raise _BadValueError
    return 1


def _size(text: str | None) -> int:
    value, unit = _number_and_unit(text)
    if unit not in _SIZES or value << _SIZES[unit] > _LARGEST:
        raise _BadValueError
    return value << _SIZES[unit]


def _string_size(text: str | None) -> int:
    """The kernel counts a string's bytes in 32 bits."""
    value = _size(text)
    if value > _LONGEST_STRING:
        raise _BadValueError("Value too large for defined data type")
    return value


def _rate(text: str | None) -> int:
    """An interval in ns: a number without a unit is ns, one with `hz` is a frequency."""
    value, unit = _number_and_unit(text)
    if unit == "hz":
        return 10**9 // value if value else 0
    if (unit and unit not in _UNITS) or value * _UNITS.get(unit, 1) > _LARGEST:
        raise _BadValueError
    return value * _UNITS.get(unit, 1)


def _word(text: str | None) -> str:
    if not text:
        raise _BadValueError
    return text


def _version(text: str | None) -> str:
    """A version that D has had. Names that came with later versions are the program's to define."""
    found = versions.read(_word(text))
    if found is None:
        raise _BadValueError("Invalid version: it has two or three numbers")
    if found not in versions.VERSIONS:
        raise _BadValueError(f"Requested version is not known; the latest is {VERSION}")
    return _word(text)


def _one_of(*words: str) -> Callable[[str | None], Value]:
    def read(text: str | None) -> Value:
        if text not in words:
            raise _BadValueError(f"Invalid value for specified option: it is one of {', '.join(words)}")
        return text

    return read


def _options() -> dict[str, _Option]:
    table: dict[str, _Option] = {}

    def add(when: When, read: Callable[[str | None], Value | None], default: Value, *names: str) -> None:
        table.update(dict.fromkeys(names, _Option(when, read, default)))

    add(
        When.COMPILE, _flag, 0,
        "argref", "cpphdrs", "defaultargs", "droptags", "empty", "errtags", "explain", "kdefs", "knodefs",
        "nolibs", "pspec", "strip", "udefs", "unodefs", "verbose", "zdefs", "lazyload", "aggpercpu",
    )  # fmt: skip
    add(When.COMPILE, _word, "", "define", "incdir", "undef", "libdir", "syslibdir", "ctypes", "dtypes")
    add(When.COMPILE, _version, VERSION, "version")
    add(When.COMMAND, _flag, 0, "cpp")
    add(When.COMMAND, _word, "cpp", "cpppath")
    add(When.COMPILE, _word, "", "amin")
    add(When.COMPILE, _one_of("kernel", "dynamic", "static", "primary"), "kernel", "linkmode")
    add(When.COMPILE, _one_of("a", "c", "s", "t"), "a", "stdc")
    add(When.COMPILE, _number, 8, "pgmax")
    add(When.RUN, _size, 0, "aggsize", "bufsize")  # 0: not set, see `Buffers`
    add(When.RUN, _size, 64 << 20, "dynvarsize")
    add(When.RUN, _size, 32 << 10, "specsize")
    add(When.RUN, _size, 16 << 20, "scratchsize")
    add(When.RUN, _string_size, 256, "strsize")
    add(When.RUN, _size, 512, "jstackstrsize")
    add(When.RUN, _number, 0, "destructive", "grabanon", "noerror", "temporal")
    add(When.RUN, _number, 1, "nspec")
    add(When.RUN, _number, -1, "cpu")
    add(When.RUN, _number, 20, "stackframes", "ustackframes")
    add(When.RUN, _number, 50, "jstackframes")
    add(When.RUN, _rate, 101 * 10**6, "cleanrate")
    add(When.RUN, _rate, 10**9, "statusrate")
    add(When.RUN, _one_of("ring", "fill", "switch"), "switch", "bufpolicy")
    add(When.RUN, _one_of("auto", "manual"), "auto", "bufresize")
    add(When.ALWAYS, _rate, 10**9, "aggrate", "switchrate")
    add(
        When.ALWAYS, _number, 0,
        "agghist", "aggpack", "aggsortkey", "aggsortkeypos", "aggsortpos", "aggsortrev", "aggzoom", "flowindent",
        "quiet", "rawbytes",
    )  # fmt: skip
    add(When.ALWAYS, _number, 14, "stackindent")
    add(When.ALWAYS, _one_of("ascii", "utf8"), "ascii", "encoding")
    return table


_TABLE: Final = _options()
_EXAMPLES: Final[Mapping[Callable[[str | None], Value | None], str]] = {  # reader -> what a value looks like
    _flag: "it takes none",
    _number: "on, off or a number, such as 8",
    _rate: "a time or a frequency, such as 100ms or 10hz",
    _size: "a size in bytes, such as 4k",
    _string_size: "a size in bytes, such as 1k",
    _word: "a word",
}


class Options:
    """The options of one session. `changed` is called with the name of each option that is set."""

    def __init__(self) -> None:
        """Everything at its default."""
        self._values: dict[str, Value] = {}
        self.changed: Callable[[str], None] = lambda _name: None
        self.definitions: list[tuple[str, str]] = []  # -D, -U, -I of the preprocessor, in their order
        self.library_folders: list[str] = []  # -L, -x libdir, likewise

    @staticmethod
    def names() -> tuple[str, ...]:
        """All options there are."""
        return tuple(_TABLE)

    @staticmethod
    def is_switch(name: str) -> bool:
        """Whether an option takes no value."""
        return _TABLE[name].read is _flag

    def set(self, name: str, value: str | None) -> None:
        """Set an option before the run, as the user says. Raises DError D_PRAGMA_OPTSET."""
        self._set(name, value, (When.COMMAND, When.COMPILE, When.RUN, When.ALWAYS))

    def set_by_program(self, name: str, value: str | None) -> None:
        """#pragma D option. A program cannot have commands started. Raises DError D_PRAGMA_OPTSET."""
        self._set(name, value, (When.COMPILE, When.RUN, When.ALWAYS))

    def set_while_running(self, name: str, value: str | None) -> None:
        """setopt(). Raises DError D_PRAGMA_OPTSET."""
        self._set(name, value, (When.ALWAYS,))

    def _set(self, name: str, value: str | None, allowed: tuple[When, ...]) -> None:
        option = _TABLE.get(name)
        if option is None:
            raise _refused(name, value, f"Invalid option name{nearest(name, _TABLE)}")
        if option.when not in allowed:
            raise _refused(name, value, _NOT_THEN.get(option.when, "Operation illegal when tracing is active"))
        try:
            parsed = option.read(value)
        except _BadValueError as error:
            raise _refused(name, value, str(error) or _invalid(option)) from None
        # dt_reduce() of libdtrace: a version can be lowered again but not raised, since the identifiers that are newer
        # have been removed.
        if name == "version" and (versions.read(str(parsed)) or LATEST) > versions.wanted(self):
            raise _refused(name, value, "Requested version conflicts with an earlier setting")
        if name in ("define", "undef", "incdir"):
            self.definitions.append(({"define": "-D", "undef": "-U", "incdir": "-I"}[name], str(parsed)))
        if name == "libdir":
            self.library_folders.append(str(parsed))
        if parsed is None:
            self._values.pop(name, None)
        else:
            self._values[name] = parsed
        self.changed(name)

    def is_set(self, name: str) -> bool:
        """Whether it was set, to whatever value."""
        return name in self._values

    def is_on(self, name: str) -> bool:
        """Whether a boolean option is on."""
        return bool(self._value(name))

    def number(self, name: str) -> int:
        """The value of an option that is a number, a size in bytes or a rate in ns."""
        value = self._value(name)
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str:
        """The value of an option as text; for an option that is a word."""
        return str(self._value(name))

    def _value(self, name: str) -> Value:
        return self._values.get(name, _TABLE[name].default)


def _invalid(option: _Option) -> str:
    """What is wrong with a value, by one that works."""
    example = _EXAMPLES.get(option.read)
    text = "Invalid value for specified option"
    return text if example is None else f"{text}: {example}"


def _refused(name: str, value: str | None, why: str) -> OptionError:
    shown = f" to '{value}'" if value is not None else ""
    return OptionError(f"failed to set option '{name}'{shown}: {why}", why)
