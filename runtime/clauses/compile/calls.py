"""Calls of subroutines, stacks and names of addresses as Python."""

from kinst.runtime.clauses.compile.arithmetic import fit
from kinst.runtime.clauses.compile.code import UNSIGNED, Code, Generator, word_of
from kinst.runtime.clauses.environment import Stack, SymbolName
from kinst.runtime.clauses.subroutines import NULLABLE
from kinst.runtime.dlang import program


def call(generator: Generator, node: program.Call) -> Code:
    """The call of a subroutine, with its result in the range of its type."""
    if node.function == "speculation":
        create = generator.bind("create_speculation", generator.state.speculations.create)
        return Code(f"{create}({generator.local('cpu')})", 0, (1 << 31) - 1)
    generator.uses_scratch = True
    function = generator.bind(node.function, generator.state.subroutines[node.function])
    arguments = [generator.value(argument) for argument in node.arguments]
    if node.function == "strtok":
        generator.state.remembers_firings = True
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
    unwind = environment.stacks.user_stack if is_user else environment.stacks.stack
    function = generator.bind("unwind_user" if is_user else "unwind", unwind)
    return Code(f"{generator.bind('Stack', Stack)}({function}(firing, {wanted}), {wanted}, {is_user})")


def symbol(generator: Generator, node: program.SymbolKey) -> Code:
    """A `SymbolName`: the address of sym(), func() and the like, reduced to the start of the object."""
    address = fit(generator, generator.value(node.address), UNSIGNED)
    start = generator.bind("object_start", generator.environment.symbols.object_start)
    name = generator.bind("SymbolName", SymbolName)
    return Code(f"{name}({node.kind!r}, {start}({address.text}, {node.kind!r}))", 0, 0, address.depth + 2)
