"""json(): against Python's own reader on random documents, and what the kernel's DTrace does with the rest."""

import json
import random

import pytest

from kinst.runtime.clauses.json_path import select
from kinst.runtime.clauses.text_functions import NULL, present

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]


def random_value(numbers: random.Random, depth: int) -> Value:
    choice = numbers.random()
    if depth and choice < 0.3:
        return [random_value(numbers, depth - 1) for _ in range(numbers.randint(0, 3))]
    if depth and choice < 0.6:
        keys = numbers.sample(["a", "b", "c", 'q"q', "x y", "[", "}", "é"], numbers.randint(0, 4))
        return {key: random_value(numbers, depth - 1) for key in keys}
    return numbers.choice([None, True, False, 0, -17, 3.25, 1e300, -2e-9, "", "text", 'a"b', "\\", "{[", "\u20ac\n"])


def paths_of(value: Value, path: str = "") -> list[tuple[str, Value]]:
    """Every place that a path can name: keys with a bracket or a dot in them cannot be."""
    found: list[tuple[str, Value]] = []
    pairs = (
        list(enumerate(value)) if isinstance(value, list) else list(value.items()) if isinstance(value, dict) else []
    )
    for key, inner in pairs:
        if isinstance(key, str) and set(key) & set('[.]"é'):
            continue
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
        found += [(path + step, inner), *paths_of(inner, path + step)]
    return found


def as_read(text: bytes, value: Value) -> Value:
    """A result as a value: strings are given without their quotes, with their escapes."""
    result: Value = json.loads(b'"' + text + b'"' if isinstance(value, str) else text)
    return result


def test_every_value_of_random_documents() -> None:
    numbers = random.Random(3)
    count = 0
    for _ in range(500):
        document = random_value(numbers, 4)
        if not isinstance(document, list | dict):
            continue
        text = json.dumps(document, indent=numbers.choice([None, 1]), ensure_ascii=numbers.random() < 0.7).encode()
        for path, value in paths_of(document):
            count += 1
            assert as_read(present(select(text, path.encode())), value) == value, (text, path)
    assert count > 1000


DOCUMENT = (
    b' { "a" : { "b" : [ 1, -2.5e+3 , { "c" : "x\\"y" } ] } , "t":true,"n":null , "e":{}, "s":"\\u00e9", "z" : [] } '
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"a.b[2].c", b'x\\"y'),
        (b"a.b[1]", b"-2.5e+3"),
        (b"a.b", b'[ 1, -2.5e+3 , { "c" : "x\\"y" } ]'),
        (b"t", b"true"),
        (b"n", b"null"),
        (b"e", b"{}"),
        (b"s", b"\\u00e9"),
        (b"z", b"[]"),
        (b"missing", NULL),
        (b"a.missing", NULL),
        (b"a.b[3]", NULL),
        (b"a.b[-1]", NULL),
        (b"a.b[2].c.d", NULL),
        (b"t.x", NULL),
        (b"z[0]", NULL),
        (b"e.x", NULL),
        (b"", NULL),
        (b"a.b.x", b"1"),  # what is no number is index 0
    ],
)
def test_paths(path: bytes, expected: bytes) -> None:
    assert select(DOCUMENT, path) == expected


def test_array_on_top() -> None:
    assert select(b'[ 10, [ 20, 30 ], { "k" : 40 } ]', b"[0]") == b"10"
    assert select(b'[ 10, [ 20, 30 ], { "k" : 40 } ]', b"1[1]") == b"30"
    assert select(b'[ 10, [ 20, 30 ], { "k" : 40 } ]', b"[2].k") == b"40"
    assert select(b'{ "" : 1 }', b"") == b"1"


@pytest.mark.parametrize(
    "text",
    [
        b"", b"1", b'"a"', b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":"x', b'{"a" 1}', b"{a:1}", b'{"a":0x1}',
        b'{"a":+1}',
        b'{"a":1-2}', b'{"a":truth}', b'{"a":True}', b'{"a":"\\u12x4"}', b'{"a":[1}', b'{"a":[1}]}', b'{"b":1 "a":2}',
        b'{"b":,"a":1}', b'{,"a":1}',
    ],
)  # fmt: skip
def test_what_is_no_json_has_no_values(text: bytes) -> None:
    assert select(text, b"a") == NULL


def test_what_comes_after_the_value_does_not_matter() -> None:
    assert select(b'{"a":1,', b"a") == b"1"
    assert select(b'{"a":"x" nonsense', b"a") == b"x"
    assert select(b'{"a":[{]}] nonsense', b"a") == b"[{]}"  # brackets and braces are counted, not matched
    assert select(b'{"a":[{}] nonsense', b"a") == b"[{}]"


def test_first_of_equal_names_wins() -> None:
    assert select(b'{"a":1,"a":2}', b"a") == b"1"


def test_large_texts_take_linear_time() -> None:
    text = b'{"a":"' + b"\\n" * 300_000 + b'","b":[' + b"[]," * 100_000 + b'2],"c":' + b"[" * 100_000

    assert select(text, b"b[100000]") == b"2"
    assert select(text, b"c") == NULL
    assert select(b"[" * 100_000, b"[0]" * 90_000) == NULL
