"""A probe description as bpftrace spells it -> what D calls that probe, for errors that bpftrace users see."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from kinst.targets.probe import IN_PROGRAMS

_ENTRY: Final = re.compile(r"(.*)\+(0x[0-9a-fA-F]+|\d+)\Z")  # kprobe:f+0x10
_SYSTEM_CALL: Final = re.compile(r"sys_(enter|exit)_(.+)\Z")
_COUNTED: Final = "no events of a CPU or of the host are counted here: profile-997 samples by time, where that is spent"
_OFFERED: Final = re.compile(r"\s*([a-z]+(?::[^\s{},]*)+)")


def _entry(words: Sequence[str]) -> str:
    function = words[-1]
    inside = _ENTRY.match(function)
    return f"kinst::{inside[1]}:{inside[2]}" if inside else f"fbt::{function}:entry"


def _return(words: Sequence[str]) -> str:
    return f"fbt::{words[-1]}:return"


def _in_program(name: str) -> Callable[[Sequence[str]], str]:
    def named(words: Sequence[str]) -> str:
        function, path = words[-1], words[-2] if len(words) > 1 else "PATH"
        inside = _ENTRY.match(function)
        return f"uprobe:{path}:{inside[1]}:{inside[2]}" if inside else f"uprobe:{path}:{function}:{name}"

    return named


def _tracepoint(words: Sequence[str]) -> str:
    call = _SYSTEM_CALL.match(words[-1])
    if call and len(words) > 1 and words[0] in ("syscalls", "raw_syscalls"):
        return f"syscall::{call[2]}:{'entry' if call[1] == 'enter' else 'return'}"
    return f"sdt:{words[0] if len(words) > 1 else ''}::{words[-1]}"


def _static(words: Sequence[str]) -> str:
    if "/" in words[0] or ".so" in words[0]:
        return f"usdt:{words[0]}:{words[1] if len(words) > 2 else ''}:{words[-1] if len(words) > 1 else ''}"
    provider = words[-2] if len(words) > 1 and not re.search(r"[/.]", words[-2]) else "sdt"
    return f"{provider}:::{words[-1]}"


def _timer(name: str) -> Callable[[Sequence[str]], str]:
    def named(words: Sequence[str]) -> str:
        unit, number = ("hz", words[0]) if len(words) == 1 else words[:2]
        return f"{name}-{number}{'' if unit == 'hz' else unit}"

    return named


_NAMED: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    "fentry": _entry,
    "fexit": _return,
    "interval": _timer("tick"),
    "kfunc": _entry,
    "kprobe": _entry,
    "kretfunc": _return,
    "kretprobe": _return,
    "profile": _timer("profile"),
    "rawtracepoint": _tracepoint,
    "tracepoint": _tracepoint,
    "uprobe": _in_program("entry"),
    "uretprobe": _in_program("return"),
    "usdt": _static,
}
_WITHOUT: Final = ("hardware", "software")


def bpftrace_name(text: str) -> str:
    """What the fields of a description, or the beginning of a clause, are in D; empty if bpftrace has no such name.

    >>> bpftrace_name("kprobe:kmalloc")
    'no provider kprobe: fbt::kmalloc:entry is what bpftrace calls kprobe:kmalloc'
    """
    found = _OFFERED.match(text.lstrip(":"))
    if found is None:
        return ""
    provider, *fields = found[1].split(":")
    words = [word for word in fields if word]
    if provider in _WITHOUT:
        return f"no provider {provider}: {_COUNTED}"
    if provider not in _NAMED or not words:
        return ""
    if len(words) > 1 and words[-1] in ("entry", "return"):
        words.pop()  # bpftrace's provider with D's name: kprobe::f:entry
    name = _NAMED[provider](words)
    if name == ":".join((provider, *fields)):
        return ""  # it is D's name, too
    here = "" if provider in IN_PROGRAMS else f"no provider {provider}: "
    return f"{here}{name} is what bpftrace calls {':'.join((provider, *words))}"
