"""Names of types: D's own, the program's, the image's, in that order."""

import pytest

from kinst.runtime.dlang.syntax.errors import DError
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.conversions import size_of
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.type_names import describe
from kinst.runtime.dlang.types.types import bare
from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    EnumType,
    Member,
    NoImageTypes,
    Pointer,
    Typedef,
)
from tests.runtime.dlang.types.declared import Image, Program, type_of

SIZES = {
    "int8_t": 1, "int16_t": 2, "int32_t": 4, "int64_t": 8, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8,
    "intptr_t": 8, "uintptr_t": 8, "ssize_t": 8, "size_t": 8, "ptrdiff_t": 8, "uchar_t": 1, "ushort_t": 2, "uint_t": 4,
    "ulong_t": 8, "u_longlong_t": 8, "id_t": 4, "pid_t": 4, "_Bool": 1, "caddr_t": 8,
    "char": 1, "short": 2, "int": 4, "long": 8, "long long": 8, "float": 4, "double": 8, "long double": 16,
    "unsigned char": 1, "signed char": 1, "unsigned": 4, "signed": 4, "short int": 2, "int short unsigned": 2,
    "long unsigned int": 8, "long long unsigned": 8, "unsigned long long int": 8, "string": 256,
}  # fmt: skip
SIGNED = {"char", "short", "int", "long", "long long", "signed char", "int8_t", "ssize_t", "ptrdiff_t", "pid_t"}


def full_struct(tag: str, size: int = 8) -> Aggregate:
    aggregate = Aggregate(AggregateKind.STRUCT, tag)
    aggregate.complete((Member("first", types.LONG, 0),), size, 8)
    return aggregate


def failure(text: str, image: Image | None = None, variables: tuple[str, ...] = ()) -> str:
    with pytest.raises(DError) as caught:
        Program(text, image, variables)
    assert caught.value.span is not None
    return caught.value.tag


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_types_that_every_program_has(name: str, size: int) -> None:
    assert size_of(type_of(f"{name} x;"), 256) == size


def test_strings_are_as_long_as_the_option_says() -> None:
    assert type_of("string x;") == types.STRING
    assert size_of(types.STRING, 1024) == 1024
    assert size_of(TypeScope(NoImageTypes(), string_size=64).lookup("string") or types.INT, 64) == 64


def test_words_that_are_types() -> None:
    scope = Program("typedef int mine_t; struct point { int x; };", Image({"theirs_t": types.INT})).scope

    assert [scope.is_type(name) for name in ("mine_t", "theirs_t", "uint64_t", "string", "size_t")] == [True] * 5
    assert [scope.is_type(name) for name in ("point", "x", "other_t", "struct", "")] == [False] * 5
    assert [scope.is_own(name) for name in ("mine_t", "uint64_t", "theirs_t")] == [True, True, False]


def test_module_before_a_name_leads_to_that_module() -> None:
    image = Image({"vnode_t": types.INT, "zfs`vnode_t": types.LONG, "zfs`struct znode": full_struct("znode")})
    scope = TypeScope(image)

    assert scope.lookup("vnode_t", "zfs") == types.LONG
    assert scope.lookup("vnode_t") == types.INT
    assert scope.is_type("zfs`vnode_t")
    assert not scope.is_type("ufs`vnode_t")
    assert describe(type_of("zfs`vnode_t x;", image)) == "long"
    assert failure("struct zfs`other { int x; };", image) == "D_DECL_SCOPE"


def test_types_of_the_program_are_in_module_d() -> None:
    scope = Program("typedef int mine_t;", Image({"theirs_t": types.INT})).scope

    assert scope.lookup("mine_t", "D") == Typedef("mine_t", types.INT)
    assert scope.lookup("theirs_t", "D") is None


def test_program_may_hide_types_of_the_image_but_not_of_d() -> None:
    image = Image({"vnode_t": types.INT, "struct s": full_struct("s")})

    assert bare(type_of("typedef char vnode_t; vnode_t x;", image)) == types.CHAR
    assert size_of(type_of("struct s { char c; }; struct s x;", image), 256) == 1
    assert bare(type_of("typedef char u_int; u_int x;")) == types.CHAR
    assert failure("typedef char uint64_t;") == "D_DECL_IDRED"


def test_named_struct_is_the_image_s() -> None:
    proc = full_struct("proc")
    program = Program("struct proc *p; struct later *q; struct proc x;", Image({"struct proc": proc}))

    assert program.variables["x"] is proc
    assert program.variables["p"] == Pointer(proc)
    assert program.scope.lookup("struct later") == program.variables["q"].target  # type: ignore[union-attr]
    assert program.scope.declared == ()


def test_struct_that_the_image_defines_after_the_program_named_it() -> None:
    image = Image()
    program = Program("struct proc *p;", image)
    scope = TypeScope(image)
    assert program.scope.lookup("struct proc") == program.variables["p"].target  # type: ignore[union-attr]
    assert scope.lookup("struct proc") is None

    image.types["struct other"] = full_struct("other")
    assert program.scope.lookup("struct other") is image.types["struct other"]


def test_forward_tag_is_completed_in_place() -> None:
    program = Program("struct node *head; struct node { int key; struct node *next; }; struct node x;")

    node = program.variables["x"]
    assert isinstance(node, Aggregate)
    assert program.variables["head"] == Pointer(node)
    assert node.size == 16
    assert node.members is not None
    assert node.members[1].type == Pointer(node)


def test_one_body_for_all_declarators() -> None:
    program = Program("struct point { int x, y; } a, *b; union { char c; } d, e;")

    assert program.variables["b"] == Pointer(program.variables["a"])  # type: ignore[arg-type]
    assert program.variables["d"] is program.variables["e"]


def test_enumerators_are_constants() -> None:
    image = Image(enumerators={"THEIRS": (EnumType("e", types.UINT, (("THEIRS", 5),)), 5)})
    scope = Program("enum color { RED, GREEN = 5, BLUE, ALIAS = RED, SUM = GREEN + 1 };", image).scope

    found = scope.enumerator("BLUE")
    assert found is not None
    kind, value = found
    assert value == 6
    assert kind.enumerators == (("RED", 0), ("GREEN", 5), ("BLUE", 6), ("ALIAS", 0), ("SUM", 6))
    assert scope.lookup("enum color") == kind
    assert scope.enumerator("THEIRS") == image.enumerators["THEIRS"]
    assert scope.enumerator("NONE") is None


def test_enumerations_may_be_named_before_they_are_defined() -> None:
    program = Program("enum e *early; enum e { A }; enum e x;")

    assert program.variables["x"] == EnumType("e", types.INT, (("A", 0),))
    assert failure("enum e x;") == "D_DECL_INCOMPLETE"


def test_declared_types_in_order() -> None:
    program = Program("typedef int mine_t; struct s { mine_t m; }; enum e { A }; struct f; union u { int i; };")

    assert [describe(kind) for kind in program.scope.declared] == ["mine_t", "struct s", "enum e", "union u"]


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("typedef int a_t; typedef int a_t;", "D_DECL_IDRED"),
        ("struct s { int x; }; struct s { int x; };", "D_DECL_TYPERED"),
        ("union s { int x; }; union s { int x; };", "D_DECL_TYPERED"),
        ("enum e { A }; enum e { B };", "D_DECL_TYPERED"),
        ("struct s { struct s { int x; } y; };", "D_DECL_TYPERED"),
        ("enum e { A, B }; enum f { B };", "D_DECL_IDRED"),
        ("enum { A }; enum { A };", "D_DECL_IDRED"),
        ("enum e { A, A };", "D_UNKNOWN"),
        ("typedef int a_t; int a_t;", "D_DECL_IDRED"),
        ("int;", "D_DECL_USELESS"),
        ("extern unsigned;", "D_DECL_USELESS"),
        ("uint64_t;", "D_DECL_USELESS"),
        ("typedef int a_t[int];", "D_DECL_DYNOBJ"),
    ],
)
def test_what_may_not_be_declared(text: str, tag: str) -> None:
    assert failure(text) == tag


def test_names_of_variables_are_taken() -> None:
    assert failure("typedef int count;", variables=("count",)) == "D_DECL_IDRED"
    assert failure("enum { count };", variables=("count",)) == "D_DECL_IDRED"


def test_constants_of_the_image_may_be_hidden() -> None:
    """Though the checker knows them as names that mean something."""
    image = Image(enumerators={"A": (EnumType("e", types.UINT, (("A", 5),)), 5)})
    scope = Program("enum { A };", image, variables=("A",)).scope

    assert scope.enumerator("A") == (EnumType("", types.INT, (("A", 0),)), 0)


def test_a_struct_and_a_union_may_share_a_tag_name() -> None:
    program = Program("struct s { int x; }; union s { char c; }; struct s x; union s y;")

    assert size_of(program.variables["x"], 256) == 4
    assert size_of(program.variables["y"], 256) == 1


def test_typedef_of_string_is_a_string() -> None:
    program = Program("typedef string name_t; name_t x; string *p; string a[3]; struct s { string m; name_t n; } s;")

    assert bare(program.variables["x"]) == types.STRING
    assert describe(program.variables["x"]) == "name_t"
    assert describe(program.variables["p"]) == "string *"
    array = program.variables["a"]
    assert isinstance(array, Array)
    assert bare(array.element) == types.STRING
    assert size_of(program.variables["s"], 256) == 512
