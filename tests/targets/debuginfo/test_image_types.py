"""Types, constants, variables and prototypes from DWARF, against what the compiler itself says of them.

The compiler is the oracle: it writes sizeof, offsetof and structs with one bit-field set into the image's data.
"""

import re
from pathlib import Path

import pytest

from kinst.targets.c_types import (
    Aggregate,
    AggregateKind,
    Array,
    EnumType,
    Function,
    ImageTypes,
    Integer,
    IntegerKind,
    Pointer,
    Qualified,
    Typedef,
    Void,
    alignment_of,
    size_of,
    strip,
)
from kinst.targets.debuginfo.image_types import image_types
from kinst.targets.image import Image, open_image
from tests.images import real_image
from tests.targets.debuginfo.compiled import compiled
from tests.targets.debuginfo.damage import damaged

HEADER = """
typedef unsigned long word_t;
typedef unsigned char byte_t;
struct later;
struct point { short x; int y; };
typedef struct { int a; struct point at; } pair_t;
struct node { struct node *next; const volatile int *value; union { long both; struct { int low, high; }; };
              struct point points[2][3]; int (*call)(struct node *, const char *, ...); struct later *later;
              word_t flexible[]; };
struct bits { int before; unsigned a : 3; unsigned b : 7; signed c : 13; unsigned long d : 33; byte_t e : 2;
              _Bool f : 1; };
struct __attribute__((packed)) packed { char c; unsigned long w; unsigned p : 5; unsigned q : 30; unsigned r : 9; };
struct __attribute__((aligned(32))) aligned { char c; };
enum colour { RED, GREEN = 5, BLUE = -2 };
enum big { BIG = 0xfffffffful, BIGGER = 0x100000000ul };
"""
MAIN = (
    HEADER
    + """
#define NULL_OF(t) ((t *)0)
#define AT(t, m) ((unsigned long)&NULL_OF(t)->m)
struct later { long hidden; struct node *node; };
static long twice = 1;
long *first_twice = &twice;
word_t counter = 7;
char text[] = "text";
extern int other_array[];
const struct bits ones_a = { .a = -1 }, ones_b = { .b = -1 }, ones_c = { .c = -1 }, ones_d = { .d = -1 },
                  ones_e = { .e = -1 }, ones_f = { .f = -1 };
const struct packed ones_p = { .p = -1 }, ones_q = { .q = -1 }, ones_r = { .r = -1 };
const unsigned long sizes[] = {
    sizeof(pair_t), sizeof(struct node), sizeof(struct bits), sizeof(struct packed), sizeof(struct aligned),
    sizeof(enum big),
};
const unsigned long aligns[] = {
    _Alignof(pair_t), _Alignof(struct node), _Alignof(struct bits), _Alignof(struct packed), _Alignof(struct aligned),
};
const unsigned long offsets[] = {
    __builtin_offsetof(struct node, value), __builtin_offsetof(struct node, high),
    __builtin_offsetof(struct node, points), __builtin_offsetof(struct node, flexible),
};
enum colour colour = BLUE;
enum big big = BIG;
__int128 wide;
long double real;
signed char small;
const char *const names[4];
struct aligned aligned;
struct point point;
pair_t pair;
int old_style();
struct node *find(struct node *list, word_t key, enum colour colour) { counter += key + colour; return list->next; }
int print(const char *format, ...) { return format[0] + old_style(); }
void start(void) { find(0, 1, RED); print(text); colour = other_array[0]; }
"""
)
OTHER = (
    HEADER
    + """
static int twice[2] = { 2, 3 };
int *second_twice = twice;
int other_array[9];
struct node other_node;
pair_t other_pair;
struct private { int a; } private_here;
struct later *only_declared;
int old_style() { return 3; }
"""
)
DIALECTS = [f"-gdwarf-{version}" for version in (2, 3, 4, 5)]
SIGNED = [f"-gdwarf-{version} -fdebug-types-section" for version in (4, 5)]  # types in units of their own
MACHINES = ["amd64", "arm64", "riscv64"]


def build(folder: Path, machine: str, *options: str) -> Image:
    return compiled(folder, machine, {"main.c": MAIN, "other.c": OTHER}, *options)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return build(tmp_path_factory.mktemp("image"), "amd64", "-gdwarf-5")


@pytest.fixture(scope="module")
def types(image: Image) -> ImageTypes:
    return image_types(image)


def words(image: Image, types: ImageTypes, name: str) -> list[int]:
    symbol = types.symbol(name)
    assert symbol is not None
    content = image.read(symbol.address, symbol.size)
    return [int.from_bytes(content[at : at + 8], "little") for at in range(0, len(content), 8)]


def aggregate(types: ImageTypes, name: str) -> Aggregate:
    found = types.type_named(name)
    assert found is not None
    kind = strip(found)
    assert isinstance(kind, Aggregate)
    return kind


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dialect", [*DIALECTS, "-gdwarf-3 -gstrict-dwarf", *SIGNED])
def test_layout_is_the_compilers(tmp_path: Path, machine: str, dialect: str) -> None:
    image = build(tmp_path, machine, *dialect.split())
    types = image_types(image)
    names = ["pair_t", "struct node", "struct bits", "struct packed", "struct aligned"]
    assert [size_of(aggregate(types, name)) for name in names] == words(image, types, "sizes")[:5]
    node = aggregate(types, "struct node")
    members = [node.find(name) for name in ("value", "high", "points", "flexible")]
    assert [member and member.offset for member in members] == words(image, types, "offsets")
    for name in "abcdef":
        assert_bits(image, types, "struct bits", name)
    for name in "pqr":
        assert_bits(image, types, "struct packed", name)


def assert_bits(image: Image, types: ImageTypes, struct: str, name: str) -> None:
    """The member's bits are exactly those that the compiler set in `ones_<name>`."""
    member, symbol = aggregate(types, struct).find(name), types.symbol(f"ones_{name}")
    assert member is not None and symbol is not None and member.bit_size is not None
    size = size_of(member.type)
    assert size is not None and member.bit_offset + member.bit_size <= 8 * size
    content = int.from_bytes(image.read(symbol.address, symbol.size), "little")
    assert content == ((1 << member.bit_size) - 1) << (8 * member.offset + member.bit_offset)


@pytest.mark.parametrize("dialect", SIGNED)
def test_types_in_units_of_their_own_have_one_another_as_members(dialect: str, tmp_path: Path) -> None:
    """gcc: what stands in such a unit for a type of another one has a signature only, and no name."""
    source = """
    struct inner { int first; long second; }; typedef struct inner inner_t; union either { inner_t one; int two; };
    struct outer { struct inner a; inner_t b[3]; union either c; } outer; struct other { int x; struct outer o; } other;
    __builtin_va_list list;
    void start(void) { outer.a.first = other.x; __builtin_memset(&list, 0, sizeof list); for (;;); }
    """
    types = image_types(compiled(tmp_path, "amd64", {"main.c": source}, *dialect.split()))
    outer = aggregate(types, "struct outer")
    found = [(member.name, size_of(member.type), member.offset) for member in outer.members or ()]
    assert found == [("a", 16, 0), ("b", 48, 16), ("c", 16, 64)]
    assert size_of(aggregate(types, "struct other")) == 88
    assert (listed := types.symbol("list")) is not None and listed.type is not None and size_of(listed.type) == 24


def test_why_structs_are_unknown(tmp_path: Path, types: ImageTypes) -> None:
    source = {"main.c": "struct node { int a; } node; void start(void) { for (;;); }"}
    for options, why in (
        (["-g0"], "no debug information"),
        (["-gdwarf-5", "-gsplit-dwarf"], "split DWARF is not supported"),
    ):
        none = image_types(compiled(tmp_path, "amd64", source, *options))
        assert none.type_named("struct node") is None and why in none.obstacle()
    assert types.type_named("struct node") is not None and types.type_named("struct nosuch") is None
    assert types.obstacle() == ""  # it has debug information, which knows no such struct


@pytest.mark.parametrize("dialect", ["-gdwarf-4", "-gdwarf-5"])
def test_alignment_is_the_compilers(tmp_path: Path, dialect: str) -> None:
    image = build(tmp_path, "amd64", dialect)
    types = image_types(image)
    names = ["pair_t", "struct node", "struct bits", "struct packed"]
    assert [alignment_of(aggregate(types, name)) for name in names] == words(image, types, "aligns")[:4]


def test_an_alignment_that_was_asked_for_is_known(types: ImageTypes) -> None:
    assert alignment_of(aggregate(types, "struct aligned")) == 32


def test_a_recursive_struct_points_to_itself(types: ImageTypes) -> None:
    node = aggregate(types, "struct node")
    following = node.find("next")
    assert following is not None and following.type == Pointer(node)


def test_members_have_the_types_that_the_source_gives_them(types: ImageTypes) -> None:
    node = aggregate(types, "struct node")
    found = {member.name: member.type for member in node.members or ()}
    integer = Integer("int", 4, is_signed=True)
    value = found["value"]
    assert isinstance(value, Pointer) and isinstance(value.target, Qualified)
    assert strip(value.target) == integer
    points = found["points"]
    assert isinstance(points, Array) and points.length == 2
    assert isinstance(points.element, Array) and points.element.length == 3
    assert points.element.element is aggregate(types, "struct point")
    assert found["flexible"] == Array(Typedef("word_t", Integer("unsigned long", 8, is_signed=False)), None)
    call = found["call"]
    assert isinstance(call, Pointer) and isinstance(call.target, Function)
    assert call.target.is_variadic and call.target.result == integer
    assert call.target.parameters is not None and call.target.parameters[0] == Pointer(node)


def test_a_struct_that_a_unit_only_declares_is_completed_from_another(types: ImageTypes) -> None:
    symbol, later = types.symbol("only_declared"), aggregate(types, "struct later")
    assert symbol is not None and symbol.type == Pointer(later)
    assert [member.name for member in later.members or ()] == ["hidden", "node"]


def test_copies_of_a_definition_are_one_type(types: ImageTypes) -> None:
    """`struct node` and the untagged struct of pair_t are in both units."""
    for variable, name in (("other_node", "struct node"), ("other_pair", "pair_t")):
        symbol = types.symbol(variable)
        assert symbol is not None and symbol.type is not None
        assert strip(symbol.type) is aggregate(types, name)


def test_of_conflicting_definitions_the_first_one_counts(tmp_path: Path) -> None:
    """And each variable has the one that its own file defines."""
    sources = {
        "a.c": "struct same; struct same *declared; void start(void) {}",
        "b.c": "struct same { int small; }; struct same first;",
        "c.c": "struct same { long large[3]; }; struct same second;",
    }
    types = image_types(compiled(tmp_path, "amd64", sources, "-g"))
    first, second, declared = (types.symbol(name) for name in ("first", "second", "declared"))
    assert first is not None and first.type is aggregate(types, "struct same") and size_of(first.type) == 4
    assert second is not None and second.type is not None and size_of(second.type) == 24
    assert declared is not None and declared.type == Pointer(first.type)


def test_enumerators_have_their_values_and_their_type(types: ImageTypes) -> None:
    expected = {"RED": 0, "GREEN": 5, "BLUE": -2, "BIG": 0xFFFFFFFF, "BIGGER": 0x100000000}
    found = {name: types.enumerator(name) for name in expected}
    assert {name: entry and entry[1] for name, entry in found.items()} == expected
    colour, big = types.type_named("enum colour"), types.type_named("enum big")
    assert isinstance(colour, EnumType) and isinstance(big, EnumType)
    assert found["RED"] is not None and found["RED"][0] == colour
    assert (colour.base.size, colour.base.is_signed) == (4, True)
    assert (big.base.size, big.base.is_signed) == (8, False)
    assert types.enumerator("counter") is None


def test_base_types_have_their_canonical_names(types: ImageTypes) -> None:
    assert types.type_named("word_t") == Typedef("word_t", Integer("unsigned long", 8, is_signed=False))
    byte = Integer("unsigned char", 1, is_signed=False, kind=IntegerKind.CHARACTER)
    assert types.type_named("byte_t") == Typedef("byte_t", byte)
    small, wide, real = (types.symbol(name) for name in ("small", "wide", "real"))
    assert small is not None and small.type == Integer("signed char", 1, True, IntegerKind.CHARACTER)  # noqa: FBT003
    assert wide is not None and wide.type is not None and size_of(wide.type) == 16
    assert real is not None and real.type is not None and size_of(real.type) == 16


def test_a_prototype_keeps_typedefs(types: ImageTypes) -> None:
    found = types.function("find")
    assert found is not None and found.parameters is not None and not found.is_variadic
    node, key, colour = found.parameters
    assert node == found.result == Pointer(aggregate(types, "struct node"))
    assert isinstance(key, Typedef) and key.name == "word_t"
    assert colour == types.type_named("enum colour")


def test_prototypes_tell_none_from_unknown(types: ImageTypes) -> None:
    printed, start, old = (types.function(name) for name in ("print", "start", "old_style"))
    assert printed is not None and printed.is_variadic and len(printed.parameters or ()) == 1
    assert start == Function(Void(), ())
    assert old is not None and old.parameters is None
    assert types.function("nosuch") is None
    assert types.function("counter") is None


def test_namesakes_of_different_files_have_their_own_types(image: Image, types: ImageTypes) -> None:
    """The symbol table's first is taken, and the type is that of the variable at its address."""
    symbol = types.symbol("twice")
    assert symbol is not None
    pointers = {name: words(image, types, name)[0] for name in ("first_twice", "second_twice")}
    expected = {"first_twice": "long", "second_twice": "int[2]"}[
        next(name for name, target in pointers.items() if target == symbol.address)
    ]
    integer = strip(symbol.type.element if isinstance(symbol.type, Array) else symbol.type or Void())
    assert isinstance(integer, Integer)
    assert integer.name == re.sub(r"\[.*", "", expected)


def test_a_definition_wins_over_a_declaration(types: ImageTypes) -> None:
    symbol = types.symbol("other_array")
    assert symbol is not None and symbol.type == Array(Integer("int", 4, is_signed=True), 9)


def test_modules_other_than_the_image_have_nothing(image: Image, types: ImageTypes) -> None:
    assert types.symbol("counter", image.module) == types.symbol("counter")
    assert types.type_named("struct node", image.module) is types.type_named("struct node")
    assert types.symbol("counter", "other") is None
    assert types.type_named("struct node", "other") is None
    assert types.function("find", "other") is None


def test_kinds_of_names_are_told_apart(types: ImageTypes) -> None:
    assert types.type_named("node") is None
    assert types.type_named("union node") is None
    assert types.type_named("enum node") is None
    assert types.type_named("find") is None
    assert types.type_named("struct nosuch") is None
    assert aggregate(types, "struct   node") is aggregate(types, "struct node")


def test_symbols_lists_names_once_each_with_their_places(image: Image, types: ImageTypes) -> None:
    listed = {symbol.name: symbol for symbol in types.symbols()}
    assert {"find", "print", "counter", "text", "other_array", "start"} <= set(listed)
    assert not any(name.startswith((".", "$")) or name.endswith(".c") or not name for name in listed)
    assert (listed["text"].size, listed["text"].module) == (5, image.module)


def test_an_image_without_debug_information_has_symbols_without_types(tmp_path: Path) -> None:
    types = image_types(build(tmp_path, "riscv64", "-g0"))
    symbol = types.symbol("counter")
    assert symbol is not None and symbol.type is None and symbol.size == 8
    assert types.type_named("struct node") is None
    assert types.function("find") is None
    assert types.enumerator("RED") is None


def test_compressed_sections_are_read(tmp_path: Path) -> None:
    types = image_types(build(tmp_path, "amd64", "-gdwarf-5", "-gz=zlib"))
    assert size_of(aggregate(types, "struct point")) == 8


def test_a_module_that_is_not_linked_yet_is_read(tmp_path: Path) -> None:
    image = compiled(tmp_path, "amd64", {"main.c": MAIN, "other.c": OTHER}, "-gdwarf-5", "-r")
    types = image_types(image)
    assert size_of(aggregate(types, "struct node")) == 88
    found = types.function("find")
    assert found is not None and len(found.parameters or ()) == 3


@pytest.mark.parametrize("seed", range(12))
def test_damaged_debug_information_is_no_error(image: Image, tmp_path: Path, seed: int) -> None:
    """Whatever can still be read is; the symbols always can."""
    types = image_types(damaged(image, (".debug_info", ".debug_abbrev", ".debug_str"), tmp_path / "damaged", seed))
    for name in ("struct node", "struct later", "pair_t", "word_t", "enum colour", "struct bits"):
        found = types.type_named(name)
        assert found is None or size_of(found) is None or size_of(found) is not None
    assert types.function("nosuch") is None
    assert types.symbol("counter") is not None
    assert types.enumerator("nosuch") is None


def test_a_real_kernel() -> None:
    """GNU Mach: sizes that its own code relies on, and its lists of threads."""
    types = image_types(open_image(real_image("gnumach")))
    saved = aggregate(types, "struct i386_saved_state")
    assert saved.size == 23 * 8
    gate = aggregate(types, "struct real_gate").find("access")
    assert gate is not None and (gate.offset, gate.bit_offset, gate.bit_size) == (4, 8, 8)
    thread, symbol = types.type_named("thread_t"), types.symbol("kernel_task")
    assert thread == Typedef("thread_t", Pointer(aggregate(types, "struct thread")))
    assert symbol is not None and isinstance(symbol.type, Typedef) and symbol.type.name == "task_t"
    assert aggregate(types, "struct thread").kind is AggregateKind.STRUCT
    member = aggregate(types, "struct thread").find("wake_active")  # of a struct in a union, both without names
    assert member is not None and (member.offset, member.bit_offset) == (48, 16)
