"""A probe name as the user writes it -> its four fields, and what they match.

DTrace's rules (libdtrace, dtrace_xstr2desc and dtrace_match_glob): provider:module:function:name is read from the
right, so `f:entry` is a function and a name; an empty field matches everything; a field with one of ``* ? [ \\`` is a
glob; any other must be equal.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kinst.targets.errors import ProbeNameError, UsageError
from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray

PROVIDERS: Final = ("dtrace", "fbt", "kinst", "profile", "sdt")
WATCHING: Final = ("mem", "mmio", "trap", "vminfo")  # of the machine that runs the image, not of its code
IN_PROGRAMS: Final = ("uprobe", "usdt")  # of programs that the image runs in user mode

_FIELDS: Final = ("provider", "module", "function", "name")
_MOST_BYTES: Final = 4096  # of a probe name: longer than any mangled symbol, far too short to hurt
_GLOB: Final = frozenset("*?[\\")
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_LONGEST_OFFSET: Final = 1 << 63
_INLINE: Final = ("entry", "return")  # kinst::f:entry is entry into the inlined copies of f


def is_glob(field: str) -> bool:
    """Whether a field is a pattern rather than a plain text."""
    return not _GLOB.isdisjoint(field)


def is_offset(field: str) -> bool:
    """Whether a name field is an offset, decimal or hex."""
    return _NUMBER.fullmatch(field) is not None


@dataclass(frozen=True, slots=True)
class ProbeName:
    """A probe name, or a pattern of names. An empty field matches anything. Offsets are decimal, however they are
    typed."""

    provider: str
    module: str
    function: str
    name: str

    def __str__(self) -> str:
        return ":".join((self.provider, self.module, self.function, self.name))

    @property
    def address(self) -> int | None:
        """The address when the function field is one (0x...): the function or instruction there is meant."""
        is_address = self.function[:2] in ("0x", "0X") and is_offset(self.function)
        return int(self.function, 16) if is_address else None

    @property
    def offset(self) -> int | None:
        """The byte offset when the name field is one."""
        return int(self.name) if is_offset(self.name) else None

    def matches_provider(self, provider: str) -> bool:
        """Whether the provider field matches."""
        return matcher(self.provider)(provider)

    def matches_module(self, module: str) -> bool:
        """Whether the module field matches. kinst calls a module `zfs.ko`, FBT calls it `zfs`: both are accepted."""
        short = module.removesuffix(".ko")
        pattern = matcher(self.module)
        return pattern(short) or pattern(f"{short}.ko")

    def matches_image(self, module: str) -> bool:
        """Whether the module field means an image: by its module, in which `-` may be written `_`, or as `kernel`."""
        return self.names_module(module) or self.matches_module("kernel")

    def names_module(self, module: str) -> bool:
        """Whether the module field means a module by its name, in which `-` may be written `_`."""
        return any(map(self.matches_module, (module, module.replace("-", "_"))))

    def matches_function(self, function: str) -> bool:
        """Whether the function field matches."""
        return matcher(self.function)(function)

    def matches_name(self, name: str) -> bool:
        """Whether the name field matches."""
        return matcher(self.name)(name)

    def matches(self, provider: str, module: str, function: str, name: str) -> bool:
        """Whether this matches the probe. `:::` matches every probe that has a function, so not BEGIN or tick-1s."""
        if not (self.provider or self.module or self.function or self.name):
            return bool(function)
        return (
            self.matches_provider(provider)
            and self.matches_module(module)
            and self.matches_function(function)
            and self.matches_name(name)
        )


def checked_module(name: str, option: str = "--name") -> str:
    """A module name that the user gives an image, by an option.

    Raises:
        UsageError: no probe description could name it.
    """
    if not name or is_glob(name) or not name.isprintable() or any(one in ":]" or one.isspace() for one in name):
        raise UsageError(f"{option} {name}: no probe description can name it: letters, digits, -, _ and . will do")
    return name


def parse_probe_name(text: str, *, providers: Collection[str] = PROVIDERS) -> ProbeName:
    """Read ``[[[provider:]module:]function:]name``.

    Args:
        text: one probe name.
        providers: those that exist.

    Raises:
        ProbeNameError: too many fields, an unknown provider, or a malformed offset or pattern.
    """
    _check_text(text)
    fields = text.split(":")
    if len(fields) > len(_FIELDS):
        raise ProbeNameError(f"{text}: {len(fields)} fields, a probe name has four: provider:module:function:name")
    provider, module, function, name = [""] * (len(_FIELDS) - len(fields)) + fields
    for field, value in zip(_FIELDS, (provider, module, function, name), strict=True):
        _check_pattern(text, field, value)
    _check_provider(text, provider, providers)
    found = ProbeName(provider, module, function, _checked_name(text, provider, name))
    if found.address is not None and found.address >> 64:
        raise ProbeNameError(f"{text}: {function} has more than the 64 bits of an address")
    return found


def parse_probe_names(text: str, *, providers: Collection[str] = PROVIDERS) -> tuple[ProbeName, ...]:
    """Several names with commas between them, as before a clause of a D program. A comma in [] is part of a pattern."""
    parts, depth, current = [], 0, ""
    for letter in text:
        # Sets do not nest, so one level is enough.
        depth = {"[": 1, "]": 0}.get(letter, depth)
        if letter == "," and not depth:
            parts.append(current)
            current = ""
        else:
            current += letter
    parts.append(current)
    return tuple(parse_probe_name(part.strip(), providers=providers) for part in parts)


def _check_text(text: str) -> None:
    if not text:
        raise ProbeNameError("an empty probe name: provider:module:function:name, any field of which may be empty")
    if len(text) > _MOST_BYTES:
        raise ProbeNameError(f"{text[:40]}...: {len(text)} characters are too long for a probe name")
    if any(letter.isspace() or not letter.isprintable() for letter in text):
        raise ProbeNameError(f"{text!r}: a probe name has no blanks or control characters in it")


def _check_pattern(text: str, field: str, value: str) -> None:
    try:
        _regex(value)
    except ValueError as error:
        raise ProbeNameError(f"{text}: in the {field} field: {error}") from None


def _check_provider(text: str, provider: str, providers: Collection[str]) -> None:
    if not provider or provider in providers:
        return
    # A pattern that matches no provider is most likely misspelled, as a plain name is.
    if is_glob(provider) and any(matcher(provider)(one) for one in providers):
        return
    near = difflib.get_close_matches(provider, providers, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(providers))}"
    raise ProbeNameError(f"{text}: no provider {provider!r}: {hint}")


def _checked_name(text: str, provider: str, name: str) -> str:
    """The name field; an offset becomes decimal without leading zeros, which is how probes are named."""
    if is_offset(name):
        offset = int(name, 16) if name[:2] in ("0x", "0X") else int(name)
        if offset >= _LONGEST_OFFSET:
            raise ProbeNameError(f"{text}: no function is so long that {name} is an offset into it")
        return str(offset)
    if provider == "kinst" and name and not is_glob(name) and name not in _INLINE:
        raise ProbeNameError(f"{text}: bad offset {name!r}: decimal, hex (0x1c), a pattern, entry, return or nothing")
    return name


@lru_cache(maxsize=1024)
def matcher(field: str) -> Callable[[str], bool]:
    """A function that says whether a text matches the field. Compiled once for each field."""
    if not field:
        return _anything
    if not is_glob(field):
        return field.__eq__
    pattern = _regex(field)
    return lambda text: pattern.fullmatch(text) is not None


def _anything(_: str) -> bool:
    return True


def matching(field: str, names: Iterable[str]) -> "NDArray[bool_]":
    """Which of many names match the field."""
    import numpy as np  # here: names are checked before anything that needs an array is known

    return np.fromiter(map(matcher(field), names), np.bool_)


@lru_cache(maxsize=1024)
def _regex(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression that takes linear time.

    What is between two stars is searched for once, from the left, and never again (an atomic group): the first place
    where it fits leaves the most for the rest. DTrace gives up on a glob with too many stars instead.
    """
    segments, current, position = [], "", 0
    while position < len(glob):
        if glob[position] == "*":
            segments.append(current)
            current, position = "", position + 1
            continue
        piece, position = _piece(glob, position)
        current += piece
    segments.append(current)
    first, *rest = segments
    if not rest:
        return re.compile(first, re.DOTALL)
    # Atomic groups never backtrack, which an ordinary `.*` for each star would do exponentially.
    middle = "".join(f"(?>.*?{segment})" for segment in rest[:-1] if segment)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def _piece(glob: str, position: int) -> tuple[str, int]:
    """The expression for one element of a glob other than a star, and where the next begins."""
    match glob[position]:
        case "?":
            return ".", position + 1
        case "[":
            return _set(glob, position + 1)
        case "\\":
            if position + 1 == len(glob):
                raise ValueError("a backslash at the end quotes nothing")
            return re.escape(glob[position + 1]), position + 2
        case letter:
            return re.escape(letter), position + 1


def _set(glob: str, position: int) -> tuple[str, int]:
    """[a-z], [!x], []x] (a bracket that comes first is meant literally), [\\]]. A range from high to low is empty."""
    negated = glob[position : position + 1] == "!"
    position += negated
    members, first = [], True
    while position < len(glob) and (first or glob[position] != "]"):
        first = False
        low, position = _member(glob, position)
        # A dash at the end of a set stands for itself.
        if glob[position : position + 1] == "-" and glob[position + 1 : position + 2] not in ("", "]"):
            high, position = _member(glob, position + 1)
            if low <= high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            members.append(re.escape(low))
    if position >= len(glob):
        raise ValueError("[ without ]")
    if not members:
        return ("." if negated else "(?!)"), position + 1
    return f"[{'^' * negated}{''.join(members)}]", position + 1


def _member(glob: str, position: int) -> tuple[str, int]:
    position += glob[position] == "\\" and position + 1 < len(glob)
    return glob[position], position + 1
