"""Memory that lies: lists in circles, texts without end, pointers to nothing, arrays of any length; and what a program
cannot ask. Nothing goes on for ever, and each error names the way that led there."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinst.runtime import (
    ImageFile,
    KinstError,
    MemoryFaultError,
    NoMemberError,
    NoNameError,
    Object,
    OperandError,
    RangeError,
    cast,
    container_of,
    follow,
    hlist_for_each_entry,
    list_for_each_entry,
    offsetof,
    open_image,
    sizeof,
)
from tests.runtime.typed.drawing import linked

SOURCE = """
typedef unsigned char u8; typedef unsigned long u64;
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; }; struct hlist_head { struct hlist_node *first; };
struct in { u64 key; struct list_head link; };
struct entry {
    int id; int class; struct in in; struct hlist_node hash; struct entry *next; unsigned low : 3, high : 5;
};
extern struct entry a, b, c; extern struct list_head head;
struct list_head head = { &a.in.link, &b.in.link }, empty = { &empty, &empty };
struct list_head round = { &c.in.link }, lost = { (void *)0x123450 };
struct hlist_head hashed = { &a.hash }, nulls = { &c.hash }, none, turning = { &b.hash };
struct entry a = { 1, 10, { 5, { &b.in.link, &head } }, { &c.hash }, &b, 5, 17 };
struct entry b = { 2, 20, { 6, { &head, &a.in.link } }, { &b.hash }, &a };
struct entry c = { 3, 30, { 7, { &c.in.link } }, { (void *)3 }, &c };
struct entry *nothing, *wild = (void *)0xdead0000beef0000;
struct entry chain[3] = { { 1, .next = &chain[1] }, { 2, .next = &chain[2] }, { 3 } };
char text[8] = "12345678"; const char *message = text; u8 raw[4] = { 'a', 0xff, 0 };
struct huge { int x; char data[1ul << 40]; } *huge = (void *)text;
struct flexible { int count; int values[]; } flexible = { 2, { 7, 8 } };
struct unknown; struct unknown *opaque; void *place = &a; int (*call)(void) = (void *)&a;
double half = 0.5; _Complex double pair;
int numbers[3] = { 1, 2, 3 }; int same[40]; _Bool odd = 1; enum kind { SMALL, LARGE = 7 } kind = LARGE, other = 5;
void start(void) { for (;;); }
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageFile]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with open_image(linked(folder, "arm64", SOURCE)) as opened:
        yield opened


def ids(found: Iterator[Object]) -> list[int]:
    return [int(one.id) for one in found]


def test_lists_end_where_they_should(image: ImageFile) -> None:
    assert ids(list_for_each_entry("struct entry", image["head"], "in.link")) == [1, 2]
    assert ids(list_for_each_entry("struct entry", image["head"].address_of_(), "in.link")) == [1, 2]
    assert ids(list_for_each_entry("struct entry", image["empty"], "in.link")) == []
    assert ids(hlist_for_each_entry("struct entry", image["hashed"], "hash")) == [1, 3]
    assert ids(hlist_for_each_entry("struct entry", image["none"], "hash")) == []
    assert ids(hlist_for_each_entry("struct entry", image["nulls"], "hash")) == [3]
    assert ids(follow(image["chain"], "next")) == [1, 2, 3]
    assert ids(follow(image["a"].next, "next")) == [2, 1]
    assert ids(follow(image["nothing"], "next")) == []


def test_circles_are_errors(image: ImageFile) -> None:
    with pytest.raises(RangeError, match=r"round, in.link\): comes to 0x[0-9a-f]+ again, and not to its end"):
        ids(list_for_each_entry("struct entry", image["round"], "in.link"))
    with pytest.raises(RangeError, match="comes to"):
        ids(hlist_for_each_entry("struct entry", image["turning"], "hash"))
    with pytest.raises(RangeError, match="has more than 1 elements"):
        ids(list_for_each_entry("struct entry", image["head"], "in.link", limit=1))
    with pytest.raises(MemoryFaultError, match=r"lost, in.link\)\[0\]->next: no memory at 0x123450"):
        list(list_for_each_entry("struct entry", image["lost"], "in.link"))


def test_a_fault_names_its_way(image: ImageFile) -> None:
    with pytest.raises(MemoryFaultError) as found:
        int(image["a"].next.next.hash.next.next.next)
    assert str(found.value) == "a.next->next->hash.next->next->next: no memory at 0x3"
    with pytest.raises(MemoryFaultError) as found:
        int(image["nothing"].id)
    assert (found.value.path, found.value.address) == ("nothing->id", 0)
    assert repr(image["nothing"].id) == "<nothing->id: no memory at 0x0>"
    pointer = image["a"].next
    for _ in range(5000):
        pointer = pointer.next
    assert len(pointer._place_.path) < 200
    with pytest.raises(MemoryFaultError, match=r"\*\(char \*\)wild: no memory at 0xdead0000beef0000"):
        cast("char *", image["wild"]).string()


def test_what_is_huge_is_not_read(image: ImageFile) -> None:
    huge = image["huge"][0]
    with pytest.raises(OperandError, match=r"huge\[0\]: has 1,099,511,627,780 bytes, and 67,108,864 can be read"):
        huge.bytes_()
    with pytest.raises(MemoryFaultError):
        str(huge)
    assert len(huge.data) == 1 << 40
    assert str(image["same"]) == "{0 <repeats 40 times>}"
    assert image["text"].string() == "12345678"
    assert image["text"].string_(3) == "123"
    assert image["message"].string_(4) == "1234"
    assert image["raw"].string() == r"a\xff"


def test_what_is_out_of_bounds(image: ImageFile) -> None:
    numbers = image["numbers"]
    assert [int(one) for one in numbers] == numbers.value_() == [1, 2, 3]
    assert numbers[1:].value_() == [2, 3]
    assert (numbers + 1)[-1] == 1
    for index in (3, -1, slice(0, 4), slice(0, 2, 2)):
        with pytest.raises(IndexError):
            numbers[index]
    flexible = image["flexible"]
    assert [int(flexible.values[at]) for at in range(2)] == [7, 8]
    assert flexible.values[:2].value_() == [7, 8]
    with pytest.raises(RangeError, match="a flexible array is read where it is"):
        flexible.read_().values[0]
    with pytest.raises(OperandError, match="has no length"):
        len(flexible.values)


def test_values_and_their_types(image: ImageFile) -> None:
    a = image["a"]
    assert [int(one) for one in (a.low, a.high, a.member_("class"))] == [5, 17, 10]
    assert a.value_()["in"] == {
        "key": 5,
        "link": {"next": int(a.member_("in").link.next), "prev": image["head"].address_},
    }
    assert container_of(a.member_("in").link.address_of_(), "struct entry", "in.link") == a.address_of_()
    assert offsetof(a.type_, "in.link") == 16
    assert sizeof(a) == a.type_.size == len(a.bytes_())
    assert image["kind"].enumerator_ == "LARGE"
    assert image["other"].enumerator_ is None
    assert image["LARGE"] == image["kind"] == 7
    assert image["odd"].value_() is True
    assert float(image["half"] * 3) == 1.5
    assert image["call"].symbol_ == image["place"].symbol_ == "image`a"
    assert cast("struct entry *", image["place"]).id == 1
    assert "low" in dir(a)
    assert "low" in dir(a.address_of_())
    assert f"{a.id:03}" == "001"
    assert copy.copy([a.id])[0] == 1


def test_what_cannot_be_asked(image: ImageFile) -> None:
    a = image["a"]
    with pytest.raises(NoMemberError, match="struct entry: has no member idd; nearest id"):
        a.member_("idd")
    assert not hasattr(a, "idd")
    assert getattr(a.id, "x", None) is None
    with pytest.raises(KinstError, match=r"a\.id: typed values are for reading"):
        a.id = 4
    with pytest.raises(KinstError, match=r"numbers\[0\]: typed values are for reading"):
        image["numbers"][0] = 4
    with pytest.raises(OperandError, match="was only declared"):
        image["opaque"].member_("x")
    with pytest.raises(OperandError, match="is a bit-field"):
        offsetof(a.type_, "low")
    with pytest.raises(OperandError, match="has no address"):
        a.low.address_of_()
    with pytest.raises(NoNameError, match="nope: the image has no such type"):
        cast("nope", a.id)
    with pytest.raises(KeyError, match="numberz: no function, variable or constant of the image; nearest numbers"):
        image["numberz"]
    for wrong in (lambda: a + 1, lambda: a < a, lambda: a.id / 0, lambda: a.id << 32, lambda: image["half"] & 1):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        a.id + "x"
    assert (a.id == "x") is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
    with pytest.raises(OperandError, match="complex"):
        image["pair"] + 1
    with pytest.raises(NoNameError, match="no __per_cpu_offset"):
        image.objects.per_cpu("a", 0)
