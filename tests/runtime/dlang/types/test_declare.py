"""Declarations to types: gcc lays structs out the same way, and what libdtrace refuses is refused with its tag."""

import random
import subprocess
from pathlib import Path

import pytest

from kinst.runtime.dlang.syntax import tree
from kinst.runtime.dlang.syntax.cursor import Names
from kinst.runtime.dlang.syntax.errors import DError, Span
from kinst.runtime.dlang.syntax.macros import Macros
from kinst.runtime.dlang.syntax.parser import parse
from kinst.runtime.dlang.types import types
from kinst.runtime.dlang.types.conversions import size_of
from kinst.runtime.dlang.types.declare import INLINE, PROBE_INPUT, PROBE_OUTPUT, Prototype
from kinst.runtime.dlang.types.scope import TypeScope
from kinst.runtime.dlang.types.type_names import describe
from kinst.targets.c_types import Aggregate, Array, Function, NoImageTypes, alignment_of
from tests.runtime.dlang.types.declared import Program, type_of

SCALARS = ("char", "short", "int", "long", "long long", "unsigned char", "unsigned short", "unsigned", "_Bool", "float",
           "double", "void *", "enum color")  # fmt: skip
WIDTHS = {"char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32, "unsigned": 32, "long": 64}
STRUCTS = 150


def random_members(numbers: random.Random, depth: int = 0) -> list[tuple[str, str]]:
    """Declarations with the names of their members; "" for what has none. Names are unique in the outermost struct."""
    kinds = (random_bits, random_bits, random_scalar, random_array, random_inner if depth < 2 else random_scalar)
    members = [
        numbers.choice(kinds)(numbers, f"m{numbers.getrandbits(40)}", depth) for _ in range(numbers.randint(1, 7))
    ]
    if not any(names for _, names in members):  # D has no structs without a size
        members.append((f"char c{numbers.getrandbits(40)};", ""))
    return members


def random_bits(numbers: random.Random, name: str, _depth: int) -> tuple[str, str]:
    kind = numbers.choice(list(WIDTHS))
    if numbers.random() < 0.15:
        return f"{kind} : {numbers.choice([0, 0, numbers.randint(1, WIDTHS[kind])])};", ""
    return f"{kind} {name} : {numbers.randint(1, WIDTHS[kind])};", name


def random_scalar(numbers: random.Random, name: str, _depth: int) -> tuple[str, str]:
    return f"{numbers.choice(SCALARS)} {name};", name


def random_array(numbers: random.Random, name: str, _depth: int) -> tuple[str, str]:
    return f"{numbers.choice(SCALARS)} {name}[{numbers.randint(1, 4)}][{numbers.randint(1, 3)}];", name


def random_inner(numbers: random.Random, name: str, depth: int) -> tuple[str, str]:
    inner = random_members(numbers, depth + 1)
    body = f"{numbers.choice(['struct', 'union'])} {{ {' '.join(text for text, _ in inner)} }}"
    if numbers.random() < 0.5:
        return f"{body};", ",".join(names for _, names in inner if names)
    return f"{body} {name};", name


def c_program(structs: list[list[tuple[str, str]]], kinds: list[str]) -> str:
    """Prints size and alignment of each, and the bytes with all bits of a member set, for every scalar member."""
    lines = ["#include <stdio.h>", "#include <string.h>", "enum color { RED };"]
    lines += [f"{kinds[n]} s{n} {{ {' '.join(text for text, _ in members)} }};" for n, members in enumerate(structs)]
    lines.append("static void show(const void *p, int n)")
    lines.append('{ const unsigned char *c = p; while (n--) printf("%02x", *c++); puts(""); }')
    lines.append("int main(void) {")
    for n, members in enumerate(structs):
        lines.append(
            f'printf("%zu %zu\\n", sizeof(struct_{n}), _Alignof(struct_{n}));'.replace("struct_", f"{kinds[n]} s")
        )
        for text, names in members:
            for name in filter(None, names.split(",")):
                lines.append(f"{{ {kinds[n]} s{n} v; memset(&v, 0, sizeof v);")
                if is_bit_field(text, name):
                    lines.append(f"v.{name} = -1;")
                else:
                    lines.append(f"memset(&v.{name}, 255, sizeof v.{name});")
                lines.append("show(&v, sizeof v); }")
    return "\n".join([*lines, "}"])


def is_bit_field(text: str, name: str) -> bool:
    return f"{name} :" in text


def ours(aggregate: Aggregate, name: str) -> str:
    """The bytes of an object with all bits of a member set."""
    member = aggregate.find(name)
    assert member is not None
    size = size_of(member.type, 256)
    bits = member.bit_size if member.bit_size is not None else size * 8
    value = ((1 << bits) - 1) << member.bit_offset << 8 * member.offset
    return value.to_bytes(aggregate.size, "little").hex()


def test_layout_is_gcc_s(tmp_path: Path) -> None:
    numbers = random.Random(20)
    structs = [random_members(numbers) for _ in range(STRUCTS)]
    kinds = [numbers.choice(["struct", "struct", "union"]) for _ in structs]
    (tmp_path / "layout.c").write_text(c_program(structs, kinds))
    subprocess.run(["gcc", "-w", "-o", tmp_path / "layout", tmp_path / "layout.c"], check=True)
    expected = subprocess.run([tmp_path / "layout"], check=True, capture_output=True, text=True).stdout.splitlines()

    text = "enum color { RED };"
    text += "".join(f"{kinds[n]} s{n} {{ {' '.join(text for text, _ in m)} }} v{n};" for n, m in enumerate(structs))
    program = Program(text)
    lines = iter(expected)
    for n, members in enumerate(structs):
        aggregate = program.variables[f"v{n}"]
        assert isinstance(aggregate, Aggregate)
        source = " ".join(text for text, _ in members)
        assert f"{aggregate.size} {alignment_of(aggregate)}" == next(lines), source
        for _, names in members:
            for name in filter(None, names.split(",")):
                assert ours(aggregate, name) == next(lines), (source, name)
    assert next(lines, None) is None


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("int x", "int"),
        ("char *x", "char *"),
        ("int x[3]", "int [3]"),
        ("int *x[3]", "int *[3]"),
        ("int (*x)[3]", "int (*)[3]"),
        ("int x[3][5]", "int [3][5]"),
        ("int (*x)(int, char)", "int (*)(int, char)"),
        ("void (*x)(void)", "void (*)(void)"),
        ("char *(*x[2])(const char *, ...)", "char *(*[2])(const char *, ...)"),
        ("int (*(*x)(int))[4]", "int (*(*)(int))[4]"),
        ("long f(int a[3], int (b)(char))", "long (int *, int (*)(char))"),
        ("const char *const x", "const char *const"),
        ("volatile const int x", "const volatile int"),
        ("uint64_t *x", "uint64_t *"),
        ("unsigned long int x", "unsigned long"),
        ("struct s *x", "struct s *"),
        ("union u *x", "union u *"),
        ("enum e *x", "enum e *"),
        ("struct { int a; } x", "struct (anon)"),
        ("string x", "string"),
        ("string x[int, string]", "string"),
        ("long double x", "long double"),
        ("int *x[string]", "int *"),
        ("x", "int"),
    ],
)
def test_types_are_described_in_c(declaration: str, expected: str) -> None:
    text = f"self {declaration};" if declaration == "x" else f"{declaration};"
    program = Program(text)

    assert [describe(kind) for kind in program.variables.values()] == [expected]


def test_dynamic_types_have_no_spelling() -> None:
    assert describe(types.STACK) == "<DYN>"
    assert describe(types.VOID) == "void"


def test_multidimensional_arrays() -> None:
    kind = type_of("int x[3][5];")

    assert isinstance(kind, Array)
    assert kind == Array(Array(types.INT, 5), 3)
    assert size_of(kind, 256) == 60


def test_keys_of_associative_arrays() -> None:
    program = Program(
        "typedef long key_t; int a[string, key_t, struct s *]; self char *b[int]; int c[3]; int d[int][2];"
    )

    keys = program.keys["a"]
    assert keys is not None
    assert [describe(key) for key in keys] == ["string", "key_t", "struct s *"]
    assert program.keys["b"] == (types.INT,)
    assert program.keys["c"] is None
    assert program.variables["d"] == Array(types.INT, 2)


def test_prototypes_declare_functions() -> None:
    program = Program("int f(int, ...); extern void g(); static char h(void); extern int e[];")

    assert program.variables["f"] == Function(types.INT, (types.INT,), is_variadic=True)
    assert program.variables["g"] == Function(types.VOID, None)
    assert program.variables["h"] == Function(types.CHAR, ())
    assert program.variables["e"] == Array(types.INT, None)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("long char x;", "D_DECL_CHARATTR"),
        ("char short x;", "D_DECL_CHARATTR"),
        ("unsigned void *x;", "D_DECL_VOIDATTR"),
        ("void long x;", "D_DECL_VOIDATTR"),
        ("signed float x;", "D_DECL_SIGNINT"),
        ("double unsigned x;", "D_DECL_SIGNINT"),
        ("int char x;", "D_DECL_COMBO"),
        ("float double x;", "D_DECL_COMBO"),
        ("int int x;", "D_DECL_COMBO"),
        ("long float x;", "D_UNKNOWN"),
        ("long long long x;", "D_DECL_COMBO"),
        ("signed unsigned x;", "D_UNKNOWN"),
        ("short long x;", "D_UNKNOWN"),
        ("short double x;", "D_UNKNOWN"),
        ("static int x;", "D_DECL_BADCLASS"),
        ("auto int x;", "D_DECL_BADCLASS"),
        ("register int x;", "D_DECL_BADCLASS"),
        ("extern static int x;", "D_DECL_CLASS"),
        ("self this int x;", "D_DECL_CLASS"),
        ("typedef extern int x;", "D_DECL_CLASS"),
        ("void x;", "D_DECL_VOIDOBJ"),
        ("self void x;", "D_DECL_VOIDOBJ"),
        ("void x[3];", "D_DECL_VOIDOBJ"),
        ("void x[int];", "D_DECL_VOIDOBJ"),
        ("typedef void nothing_t; nothing_t x;", "D_DECL_VOIDOBJ"),
        ("struct s { void v; };", "D_DECL_VOIDOBJ"),
        ("struct s { int a[]; };", "D_DECL_VOIDOBJ"),
        ("struct s { int f(int); };", "D_DECL_VOIDOBJ"),
        ("struct s x;", "D_DECL_INCOMPLETE"),
        ("struct s x[2];", "D_DECL_INCOMPLETE"),
        ("struct s x[int];", "D_DECL_INCOMPLETE"),
        ("struct s { struct s inner; };", "D_DECL_INCOMPLETE"),
        ("struct s { union u inner; };", "D_DECL_INCOMPLETE"),
        ("int x[];", "D_DECL_ARRNULL"),
        ("this char x[];", "D_DECL_ARRNULL"),
        ("int x[0];", "D_DECL_ARRSUB"),
        ("int x[-1];", "D_DECL_ARRSUB"),
        ("int x[y];", "D_DECL_ARRSUB"),
        ('int x["s"];', "D_DECL_ARRSUB"),
        ("char x[0x100000000];", "D_DECL_ARRBIG"),
        ("int x[65536][65536];", "D_DECL_ARRBIG"),
        ("int x[3][int];", "D_DECL_DYNOBJ"),
        ("int (*x)[int];", "D_DECL_DYNOBJ"),
        ("struct s { int a[int]; };", "D_DECL_DYNOBJ"),
        ("struct s { int : 3; int; };", "D_DECL_MNAME"),
        ("struct s { struct t; };", "D_DECL_MNAME"),
        ("struct s { int a; char a; };", "D_UNKNOWN"),
        ("struct s { int a : 0; };", "D_DECL_BFCONST"),
        ("struct s { int a : -1; };", "D_DECL_BFCONST"),
        ("struct s { int a : b; };", "D_DECL_BFCONST"),
        ("struct s { int a : 33; };", "D_DECL_BFSIZE"),
        ("struct s { char a : 9; };", "D_DECL_BFSIZE"),
        ("struct s { float a : 3; };", "D_DECL_BFTYPE"),
        ("struct s { int *a : 3; };", "D_DECL_BFTYPE"),
        ("enum e { A }; struct s { enum e a : 3; };", "D_DECL_BFTYPE"),
        ('enum e { A = "a" };', "D_DECL_ENCONST"),
        ("enum e { A = b };", "D_DECL_ENCONST"),
        ("enum e { A = 0x80000000 };", "D_DECL_ENOFLOW"),
        ("enum e { A = -2147483649 };", "D_DECL_ENOFLOW"),
        ("enum e { A = 0x7fffffff, B };", "D_DECL_ENOFLOW"),
        ("int f(static int);", "D_DECL_PARMCLASS"),
        ("int f(extern int a);", "D_DECL_PARMCLASS"),
        ("int x[typedef int];", "D_DECL_PARMCLASS"),
        ("int f(void, int);", "D_DECL_PROTO_VOID"),
        ("int f(int, void);", "D_DECL_PROTO_VOID"),
        ("int f(void v);", "D_DECL_PROTO_NAME"),
        ("int f(int a, char a);", "D_DECL_PROTO_FORM"),
        ("int f(int a[int]);", "D_DECL_PROTO_TYPE"),
        ("int x[void];", "D_DECL_PROTO_TYPE"),
        ("int x[int, void];", "D_DECL_PROTO_TYPE"),
        ("int x[int, ...];", "D_DECL_PROTO_VARARGS"),
    ],
)
def test_what_may_not_be_declared(text: str, tag: str) -> None:
    with pytest.raises(DError) as caught:
        Program(text)

    assert caught.value.tag == tag
    assert caught.value.span is not None


def parameters(text: str, prototype: Prototype, formal: str | None = None) -> str:
    """The types of the parameters of a function that a text declares, or the tag of what is wrong."""
    scope = TypeScope(NoImageTypes())
    try:
        kinds = scope.parameters(
            parsed_parameters(text), prototype, lambda _: None, None if formal is None else parsed_parameters(formal)
        )
    except DError as error:
        return error.tag
    return ", ".join(map(describe, kinds))


def parsed_parameters(text: str) -> tuple[tree.Parameter, ...]:
    item = parse(f"int f({text});", names=Names(TypeScope(NoImageTypes()).is_type), macros=Macros(())).items[0]
    assert isinstance(item, tree.Declaration)
    part = item.declarators[0].parts[0]
    assert isinstance(part, tree.FunctionPart)
    return part.parameters or ()


def test_parameters_of_inlines_and_probes() -> None:
    assert parameters("int a, string b", INLINE) == "int, string"
    assert parameters("void", INLINE) == ""
    assert parameters("int", INLINE) == "D_DECL_PROTO_NAME"
    assert parameters("int a[int]", INLINE) == "<DYN>"
    assert parameters("int, char *", PROBE_INPUT) == "int, char *"
    assert parameters("int a[int]", PROBE_INPUT) == "D_DECL_PROTO_TYPE"
    assert parameters("char *b, int a", PROBE_OUTPUT, formal="int a, char *b") == "char *, int"
    assert parameters("char *c", PROBE_OUTPUT, formal="int a, char *b") == "D_DECL_PROTO_FORM"


def test_recursion_has_an_end() -> None:
    """A hostile program is refused before any reader of types runs out of stack."""
    deep = "typedef int t0;" + "".join(f"typedef t{n} *t{n + 1};" for n in range(400))
    wide = "typedef void (*f0)(int);" + "".join(f"typedef void (*f{n + 1})(f{n}, f{n});" for n in range(40))
    for text in (deep, wide):
        with pytest.raises(DError) as caught:
            Program(text)
        assert caught.value.tag == "D_UNKNOWN"


def test_many_enumerators_and_members_take_linear_time() -> None:
    members = "".join(f"int m{n};" for n in range(5000))
    enumerators = ",".join(f"E{n}" for n in range(5000))

    program = Program(f"struct s {{ {members} }}; enum e {{ {enumerators} }}; struct s x; enum e y;")

    assert size_of(program.variables["x"], 256) == 20000
    found = program.scope.enumerator("E4999")
    assert found is not None and found[1] == 4999


def test_errors_say_where() -> None:
    with pytest.raises(DError) as caught:
        Program("int y;\nstruct s {\n  float flag : 3;\n};")

    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 9)


def test_unknown_names_are_refused() -> None:
    span = Span("", 1, 1, 1, "")
    node = tree.TypeName(
        span, tree.Specifiers(span, (), (), tree.NamedType(span, "m", "gone_t")), tree.Declarator(span, "", ())
    )
    with pytest.raises(DError) as caught:
        TypeScope(NoImageTypes()).type_of(node, lambda _: None)

    assert caught.value.tag == "D_UNKNOWN"
    assert "m`gone_t" in caught.value.message
