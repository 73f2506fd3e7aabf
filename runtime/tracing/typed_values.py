"""A guest, and what its image says of types -> its typed values, and the arguments of a hit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kinst.runtime.clauses.environment import POINTER
from kinst.runtime.clauses.guest.symbols import ImageSymbols
from kinst.runtime.clauses.profiles import AUTO
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.types import CHAR, UCHAR
from kinst.runtime.providers.provider import Argument
from kinst.runtime.systems.registry import variables_of
from kinst.runtime.tracing.programs.type_texts import TypeTexts
from kinst.runtime.typed.errors import OperandError, RangeError
from kinst.runtime.typed.image_objects import Locate, Objects, Places
from kinst.runtime.typed.objects import Object
from kinst.runtime.typed.types import Type
from kinst.runtime.typed.view import Reads, View, is_integral
from kinst.targets.arch.facts import ArchFacts
from kinst.targets.c_types import Array, CType, ImageTypes, Pointer, Qualified, strip

if TYPE_CHECKING:
    from kinst.rewriter.rewriting import Opened


def objects_of(
    arch: ArchFacts,
    types: ImageTypes,
    memory: Reads,
    describe: Callable[[int, str], str],
    locate: Locate,
    beside: Mapping[str, Locate],
    variables: Mapping[str, str],
) -> Objects:
    """The typed values of a guest.

    Args:
        arch: its machine.
        types: what its image, and others in the machine, say.
        memory: its virtual memory.
        describe: an address by name, as `Symbols.describe`.
        locate: where what was linked at an address is now.
        beside: the same of other images, by module.
        variables: types of variables that debug information may leave out.
    """
    texts = TypeTexts(TypeScope(types))

    def type_of(text: str) -> CType | None:
        found = texts.resolve(text)
        return found if found is None or arch.char_is_signed else _with_unsigned_char(found)

    view = View(memory, types, type_of, lambda address: describe(address, POINTER), arch.long_double_is_x87)
    spelt = {name: one for module, one in beside.items() for name in (module, module.replace("-", "_"))}
    return Objects(view, Places(locate, spelt, variables))


def objects_of_file(opened: "Opened", types: ImageTypes, memory: Reads, bias: int) -> Objects:
    """The typed values of an image without a machine of ours: in its file, or in memory that is elsewhere, `bias` bytes
    from its link addresses."""
    image, variables = opened.program.original, variables_of(opened.image, AUTO)
    describe = ImageSymbols(image, lambda: opened.program.functions, bias=bias).describe
    return objects_of(image.facts, types, memory, describe, lambda link, _site: link + bias, {}, variables)


def _with_unsigned_char(kind: CType) -> CType:
    """The same type with the machine's char, where D has its own, which is signed."""
    match kind:
        case Pointer(target=target):
            return Pointer(_with_unsigned_char(target))
        case Array(element=element, length=length):
            return Array(_with_unsigned_char(element), length)
        case Qualified(target=target, is_const=const, is_volatile=volatile):
            return Qualified(_with_unsigned_char(target), const, volatile)
        case _:
            return _UNSIGNED if kind == CHAR else kind


_UNSIGNED = type(CHAR)("char", UCHAR.size, is_signed=False, kind=UCHAR.kind)


class Arguments(Sequence[Object]):
    """The arguments of a hit as typed values: D's args[]."""

    def __init__(self, objects: Objects, described: Sequence[Argument] | None, raw: Callable[[int], int]) -> None:
        """`described` are those that the probe says it has; None: they are not known. `raw` reads arg0, arg1, ..."""
        self._objects, self._described, self._raw = objects, described, raw

    def __len__(self) -> int:
        return len(self._described or ())

    def __iter__(self) -> Iterator[Object]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Object:  # type: ignore[override]  # no slices: each one is read by itself
        """One of them.

        Raises:
            RangeError: the probe has no such argument, or none of known types.
            OperandError: it is not in an integer register, nor those behind it, as floating-point numbers are not.
            MachineError: it is not available.
        """
        if self._described is None:
            raise RangeError(f"args[{index}]: debug information does not say what arguments the probe has")
        if not 0 <= index < len(self._described):
            raise RangeError(f"args[{index}]: the probe has {len(self._described)} arguments")
        for before in range(index + 1):
            kind = self._type(before)
            if not is_integral(strip(kind.kind)):
                raise OperandError(f"args[{index}]: args[{before}] is {kind}, which is in no integer register")
        described = self._described[index]
        raw = self._raw(index if described.mapping is None else described.mapping)
        return self._objects.converted(self._type(index), raw, f"args[{index}]")

    def _type(self, index: int) -> Type:
        native = self._described[index].native if self._described is not None else ""
        return self._objects.c_type(native)
