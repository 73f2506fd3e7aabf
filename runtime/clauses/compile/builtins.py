"""Builtin variables as Python."""

from collections.abc import Callable, Mapping
from typing import Final

from kinst.runtime.clauses.compile.arithmetic import fit
from kinst.runtime.clauses.compile.code import HALF, SIGNED, UNSIGNED, WORD, Code, Generator, is_string, scalar_of
from kinst.runtime.clauses.environment import GuestProfile
from kinst.runtime.dlang import program
from kinst.runtime.trap.faults import Fault, FaultKind
from kinst.runtime.trap.trap import Firing

_NUMBERS: Final = (1 << 31) - 1  # the range of CPU and probe numbers
_PROBE_FIELDS: Final = {"probeprov": "provider", "probemod": "module", "probefunc": "function", "probename": "name"}
_PROFILE_STRINGS: Final = frozenset({"execname", "execargs", "zonename", "jailname", "cwd", "root"})
_USER_DEPTH: Final = 2048  # the most frames that are counted for ustackdepth


def builtin(generator: Generator, node: program.Builtin) -> Code:
    """The value of a builtin variable, in the range of its type."""
    name = node.name
    if name in _PROBE_FIELDS:
        texts = generator.bind(name, generator.state.probe_texts[_PROBE_FIELDS[name]])
        return Code(f"{texts}[{generator.local('probe')}]")
    if name in _PROFILE_STRINGS:
        generator.environment.uses_profile(name)
        profile = generator.bind("profile", generator.environment.profile)
        return Code(f"{profile}.string(firing, {name!r})[:{generator.strsize}]")
    code = _numeric(generator, node)
    scalar = scalar_of(node.type)
    return code if scalar is None or is_string(node.type) else fit(generator, code, scalar)


def _numeric(generator: Generator, node: program.Builtin) -> Code:
    if node.index is not None:
        return _indexed(generator, node.name, node.index)
    if node.name.startswith("arg") and node.name[3:].isdigit():
        return _argument(node.name[3:], 1)
    if node.name in _NUMERIC:
        return _NUMERIC[node.name](generator)
    generator.environment.uses_profile(node.name)
    profile = generator.bind("profile", generator.environment.profile)
    return Code(f"{profile}.integer(firing, {node.name!r})", -HALF, WORD - 1)


def _argument(index: str, depth: int) -> Code:
    """arg0 to arg9 and raw args[]: providers give unsigned or signed numbers, which are wrapped to int64."""
    return Code(f"firing.enabling.argument(firing, {index})", -HALF, WORD - 1, depth)


def _indexed(generator: Generator, name: str, index: program.Expression) -> Code:
    code = generator.value(index)
    if name == "args":
        return _argument(code.text, code.depth + 1)
    if name == "uregs":
        register = generator.bind("user_register", _user_register(generator.environment.profile))
        return Code(f"{register}(firing, {code.text})", 0, UNSIGNED.high, code.depth + 1)
    count = len(generator.environment.arch.registers)
    if isinstance(code.constant, int) and 0 <= code.constant < count:
        return Code(f"firing.frame.regs[{code.constant}]", 0, UNSIGNED.high)
    return Code(
        f"{generator.bind('register', _register)}(firing, {code.text}, {count})", 0, UNSIGNED.high, code.depth + 1
    )


def _register(firing: Firing, index: int, count: int) -> int:
    if not 0 <= index < count:
        raise Fault(FaultKind.ILLOP, index)
    return firing.regs[index]


def _user_register(profile: GuestProfile) -> Callable[[Firing, int], int]:
    """A function that reads a register of user mode: BADADDR where a thread has no user mode, as in the kernel, where
    curthread has no saved registers then."""

    def register(firing: Firing, index: int) -> int:
        regs = profile.user_registers(firing)
        if regs is None:
            raise Fault(FaultKind.BADADDR)
        if not 0 <= index < len(regs):
            raise Fault(FaultKind.ILLOP, index)
        return regs[index]

    return register


def _stacks(method: str, high: int) -> Callable[[Generator], Code]:
    def generate(generator: Generator) -> Code:
        stacks = generator.environment.stacks
        return Code(f"{generator.bind(method, getattr(stacks, method))}(firing)", 0, high)

    return generate


def _user_caller(generator: Generator) -> Code:
    caller = generator.bind("user_caller", generator.environment.user_stacks.caller)
    return Code(f"{caller}(firing)", 0, UNSIGNED.high)


def _user_depth(generator: Generator) -> Code:
    unwind = generator.bind("unwind_user", generator.environment.user_stacks.stack)
    return Code(f"len({unwind}(firing, {_USER_DEPTH}))", 0, _USER_DEPTH)


def _target(generator: Generator) -> Code:
    """It is asked for at each firing, in the process of that."""
    return Code(f"{generator.bind('target', generator.environment.target)}(firing)", -1, _NUMBERS)


def _epid(generator: Generator) -> Code:
    epid = generator.bind("epid", generator.environment.epid)
    return Code(f"{epid}({generator.number}, {generator.local('probe')})", 0, _NUMBERS)


_NUMERIC: Final[Mapping[str, Callable[[Generator], Code]]] = {
    "cpu": lambda generator: Code(generator.local("cpu"), 0, _NUMBERS, 0),
    "curcpu": lambda generator: Code(generator.local("cpu"), 0, _NUMBERS, 0),
    "id": lambda generator: Code(generator.local("probe"), 0, _NUMBERS, 0),
    "epid": _epid,
    "$target": _target,
    "timestamp": lambda generator: Code(generator.local("time"), 0, UNSIGNED.high, 0),
    "vtimestamp": lambda generator: Code(generator.local("time"), 0, UNSIGNED.high, 0),
    "walltimestamp": lambda generator: Code(generator.local("wall"), 0, SIGNED.high, 0),
    "caller": _stacks("caller", UNSIGNED.high),
    "ucaller": _user_caller,
    "stackdepth": _stacks("depth", _NUMBERS),
    "ustackdepth": _user_depth,
}
