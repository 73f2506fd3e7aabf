"""Names of types -> types: first D's own, then the program's, then those of the traced image."""

from collections.abc import Callable, Sequence

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.types.declare import (
    Constant,
    Prototype,
    TypeReader,
    check_class,
    check_complete,
    check_name,
    is_defined,
    is_tag_alone,
    measure,
)
from kinst.runtime.dlang.types.intrinsics import ALWAYS, FAMILIAR
from kinst.runtime.dlang.types.types import DType, Dynamic, String, embedded_string
from kinst.targets.c_types import Array, CType, EnumType, Function, ImageTypes, Typedef

OWN_MODULES = frozenset({"", "C", "D"})  # C` means the types of headers, D` the program's own


def _no_variable(_: str) -> bool:
    return False


class TypeScope:
    """The types of one session.

    `is_variable` says whether a word already is a global variable, an inline or a builtin: typedefs and enumerators may
    not take its name. The checker sets it.
    """

    def __init__(
        self, image: ImageTypes, string_size: int = 256, is_variable: Callable[[str], bool] = _no_variable
    ) -> None:
        self.is_variable = is_variable
        self._image = image
        self._string_size = string_size
        self._reader = TypeReader(self, string_size)
        self._typedefs: dict[str, CType] = {}
        self._tags: dict[str, CType] = {}
        self._enumerators: dict[str, tuple[EnumType, int]] = {}
        self._from_image: dict[tuple[str, str], CType | None] = {}
        self._measures: dict[str, tuple[int, int]] = {}

    # -- names --------------------------------------------------------------------------------------------------------

    def is_type(self, name: str) -> bool:
        """Whether a word, or module`word, names a type."""
        module, _, word = name.rpartition("`")
        return self.lookup(word, module) is not None

    def is_own(self, name: str) -> bool:
        """Whether a plain word is a type of D itself or of the program. A variable of that name is an error
        (D_DECL_IDRED), but it may hide a type of the image."""
        return name in ALWAYS or name in self._typedefs

    def lookup(self, name: str, module: str = "") -> DType | None:
        """A type by name: "vnode_t", "struct x", "enum y". A struct that the program only named is taken from the image
        if that defines it. None if the name is unknown."""
        if module not in OWN_MODULES:
            return self._of_image(name, module)
        own = ALWAYS.get(name) or self._typedefs.get(name) or self._tags.get(name)
        if own is not None and (isinstance(own, String | Dynamic) or is_defined(own)):
            return own
        found = None if module else self._of_image(name, "")
        return found or own or FAMILIAR.get(name)

    def enumerator(self, name: str) -> tuple[EnumType, int] | None:
        """The type and value of an enumeration constant; None if the name is unknown."""
        return self._enumerators.get(name) or self._image.enumerator(name)

    @property
    def declared(self) -> tuple[CType, ...]:
        """The types that the program declares: typedefs, and structs, unions and enumerations with a tag."""
        return (*self._typedefs.values(), *filter(is_defined, self._tags.values()))

    def _of_image(self, name: str, module: str) -> CType | None:
        key = name, module
        if key not in self._from_image:
            self._from_image[key] = self._image.type_named(name, module)
        return self._from_image[key]

    # -- types --------------------------------------------------------------------------------------------------------

    def resolve(self, specifiers: tree.Specifiers, declarator: tree.Declarator, constant: Constant) -> DType:
        """The type of a variable or inline that is declared; for an associative array the type of its values
        (`declarator_keys` gives the keys). The prototype of a function gives a `Function` and declares no variable."""
        kind = self._reader.declared(specifiers, declarator, constant)
        if not declarator.name:
            return kind
        check_name(declarator, "declared name")
        storage = check_class(specifiers)
        if storage == "extern" or (isinstance(kind, Function) and storage in ("", "static")):
            return kind
        if storage in ("auto", "register", "static"):
            raise DError("D_DECL_BADCLASS", f"storage class {storage} is not appropriate in D", specifiers.span)
        if isinstance(kind, Array) and kind.length is None:
            message = f"an array is declared with a size or with the types of its keys: {declarator.name}"
            raise DError("D_DECL_ARRNULL", message, declarator.span)
        if self.is_own(declarator.name):
            raise DError("D_DECL_IDRED", f"identifier redeclared: {declarator.name} is a type", declarator.span)
        check_complete(kind, "variable", declarator.name, declarator.span)
        return kind

    def declarator_keys(self, declarator: tree.Declarator, constant: Constant) -> tuple[DType, ...] | None:
        """The types of an associative array's keys; None for anything else."""
        return self._reader.keys(declarator, constant)

    def type_of(self, node: tree.TypeName, constant: Constant) -> DType:
        """The type that a type name stands for, in a cast, in sizeof, as a key or a parameter."""
        return self._reader.type_of(node, constant)

    def parameters(
        self,
        parameters: Sequence[tree.Parameter],
        prototype: Prototype,
        constant: Constant,
        formal: Sequence[tree.Parameter] | None = None,
    ) -> tuple[DType, ...]:
        """The types of the parameters of an inline or a probe. `prototype` is `declare.INLINE`, `PROBE_INPUT`, or
        `PROBE_OUTPUT` with the input as `formal`."""
        return self._reader.parameters(parameters, prototype, constant, formal)

    # -- declarations -------------------------------------------------------------------------------------------------

    def declare(self, node: tree.Declaration, constant: Constant) -> None:
        """Declare a typedef, or a struct, union or enum alone. Raises DError D_DECL_USELESS for a type alone that is
        none of these."""
        check_class(node.specifiers)
        if not node.declarators:
            self._reader.base(node.specifiers, constant)
            if not is_tag_alone(node.specifiers):
                raise DError("D_DECL_USELESS", "useless declaration", node.span)
        for declarator in node.declarators:
            self._typedef(node.specifiers, declarator, constant)

    def _typedef(self, specifiers: tree.Specifiers, declarator: tree.Declarator, constant: Constant) -> None:
        name = declarator.name
        kind = self._reader.declared(specifiers, declarator, constant)
        check_name(declarator, "declared name")
        if any(isinstance(part, tree.KeysPart) for part in declarator.parts):
            raise DError("D_DECL_DYNOBJ", f"an associative array is not a type: {name}", declarator.span)
        if self._is_taken(name) or self.is_own(name):
            raise DError("D_DECL_IDRED", f"identifier redeclared: {name}", declarator.span)
        target = embedded_string(self._string_size) if isinstance(kind, String) else kind
        assert not isinstance(target, String | Dynamic)
        self._measures[name] = measure(target, self._measured)
        self._typedefs[name] = Typedef(name, target)

    # -- declare.TypeNames --------------------------------------------------------------------------------------------

    def add_tag(self, name: str, kind: CType) -> None:
        """Define what "struct x", "union x" or "enum x" is from now on."""
        self._tags[name] = kind

    def own_tag(self, name: str) -> CType | None:
        """The type of a tag that the program itself declared or named; None if it did not."""
        return self._tags.get(name)

    def add_enumerator(self, span: Span, name: str, kind: EnumType, value: int) -> None:
        """Add an enumeration constant, or give it its final type when its enumeration is complete. Raises DError
        D_DECL_IDRED."""
        old = self._enumerators.get(name)
        is_same = old is not None and old[0].tag == kind.tag and not old[0].enumerators
        if (old is not None and not is_same) or self.is_own(name) or (old is None and self._is_taken(name)):
            raise DError("D_DECL_IDRED", f"identifier redeclared: {name}", span)
        self._enumerators[name] = kind, value

    def _is_taken(self, name: str) -> bool:
        """Whether D or the program already defines the word. Constants of the image may be hidden."""
        return self.is_variable(name) and self._image.enumerator(name) is None

    def measure(self, kind: CType) -> tuple[int, int]:
        """How deep a type is, and how many parts it has."""
        return measure(kind, self._measured)

    def _measured(self, name: str) -> tuple[int, int]:
        return self._measures.get(name, (1, 1))
