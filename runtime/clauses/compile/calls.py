"""Calls of subroutines, stacks and names of addresses as Python."""

from collections.abc import Callable

from kinst.runtime.clauses.compile.arithmetic import fit
from kinst.runtime.clauses.compile.code import UNSIGNED, Code, Generator, word_of
from kinst.runtime.clauses.environment import Environment, Stack, SymbolName
from kinst.runtime.clauses.subroutines import NULLABLE
from kinst.runtime.dlang import program
from kinst.runtime.trap.trap import Firing


def call(generator: Generator, node: program.Call) -> Code:
    """The call of a subroutine, with its result in the range of its type."""
    if node.function == "speculation":
        create = generator.bind("create_speculation", generator.state.speculations.create)
        return Code(f"{create}({generator.local('cpu')})", 0, (1 << 31) - 1)
    generator.use_scratch()
    function = generator.bind(node.function, generator.state.subroutines[node.function])
    arguments = [generator.value(argument) for argument in node.arguments]
    if node.function == "strtok":
        generator.state.remember_firings()
    depth = max((argument.depth for argument in arguments), default=0) + 1
    word = word_of(node.type)
    text = f"{function}({', '.join(argument.text for argument in arguments)})"
    return Code(text, word.low, word.high, depth, is_nullable=node.function in NULLABLE)


def stack(generator: Generator, node: program.StackKey) -> Code:
    """A stack as a key."""
    return stack_trace(generator, node.frames, is_user=node.is_user)


def stack_trace(generator: Generator, frames: int | None, *, is_user: bool) -> Code:
    """A `Stack`. Without a number of frames, the option decides how many."""
    environment = generator.environment
    wanted = frames if frames is not None else environment.option("ustackframes" if is_user else "stackframes")
    if is_user:
        return Code(f"{generator.bind('user_stack', _user_stack(environment))}(firing, {wanted})")
    function = generator.bind("unwind", environment.stacks.stack)
    return Code(f"{generator.bind('Stack', Stack)}({function}(firing, {wanted}), {wanted})")


def _user_stack(environment: Environment) -> Callable[[Firing, int], Stack]:
    """A function that gives a stack of user mode, with its names: when it is printed, the process may have exited."""
    unwind, named, number = environment.user_stacks.stack, environment.user_symbols.stack, environment.profile.integer
    return lambda firing, frames: named(unwind(firing, frames), frames, number(firing, "pid"))


def symbol(generator: Generator, node: program.SymbolKey) -> Code:
    """A `SymbolName`: the address of sym(), func() and the like, reduced to the start of the object."""
    address = fit(generator, generator.value(node.address), UNSIGNED)
    if node.kind.startswith("u"):
        named = generator.bind("user_symbol", _user_symbol(generator.environment))
        return Code(f"{named}(firing, {address.text}, {node.kind!r})", 0, 0, address.depth + 1)
    start = generator.bind("object_start", generator.environment.symbols.object_start)
    name = generator.bind("SymbolName", SymbolName)
    return Code(f"{name}({node.kind!r}, {start}({address.text}, {node.kind!r}))", 0, 0, address.depth + 2)


def _user_symbol(environment: Environment) -> Callable[[Firing, int, str], SymbolName]:
    """A function that names an address of user mode at once: when it is printed, the process may have exited."""
    named, number = environment.user_symbols.symbol, environment.profile.integer
    return lambda firing, address, kind: named(address, kind, number(firing, "pid"))
