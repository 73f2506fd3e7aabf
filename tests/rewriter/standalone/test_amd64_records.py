"""Records of trampolines of amd64, in Unicorn: what is in them, and what others that run meanwhile do to them."""

import random
from dataclasses import dataclass, replace

import pytest

from kinst.rewriter.disassemble import disassemble
from kinst.rewriter.standalone.code.trampoline import Clock, Constant, ImmovableError, Register
from kinst.targets.arch.amd64 import AMD64, GENERAL, RAX, RIP, RSP, Kind
from kinst.targets.instruction import Flow
from kinst.targets.standalone import RING_HEAD, WORD
from tests.rewriter.standalone.amd64_guest import Guest, State, drawn
from tests.rewriter.standalone.amd64_runs import APART, EVERYTHING, GENERATOR, HELD, Moved, moved_by
from tests.rewriter.standalone.single import Covered, Record, trampoline_of

SITE = 0x40_1000
PUSH = b"\x55"
CAPACITY = 4
TAKEN = 1 << 63  # somebody writes to the place
GIVEN = tuple[Clock | Register | Constant, ...]
ALL_WORDS: GIVEN = (*(Register(number) for number in range(17)), Clock(), Constant(2**64 - 2), Constant(5))


def site(words: GIVEN, dead: int, *, has_stack: bool = True, number: int = 0) -> Covered:
    """A push that is recorded."""
    ring = SITE + 2 * APART
    task = Record(ring, CAPACITY - 1, WORD * (2 + len(words)), number, words)
    return Covered(SITE + 0x1000 * number, PUSH, 0, Kind.PUSH, Flow.NEXT, dead & ~HELD, has_stack, task)


@dataclass(frozen=True)
class Ring:
    """That of some records with the same words, in a guest."""

    guest: Guest
    words: GIVEN
    address: int = SITE + 2 * APART

    def start(self, number: int) -> None:
        """`number` records were begun, and nothing is in any place."""
        self.guest.write(
            self.address, number.to_bytes(WORD, "little") + bytes(RING_HEAD - WORD + self._size * (CAPACITY + 1))
        )

    @property
    def begun(self) -> int:
        return self.guest.word(self.address)

    def place(self, row: int) -> int:
        return self.address + RING_HEAD + row * self._size

    def record(self, number: int) -> list[int]:
        start = self.place(number % CAPACITY)
        return [self.guest.word(start + WORD * word) for word in range(2 + len(self.words))]

    def expected(self, number: int, one: Covered, state: State, delta: int = 0) -> list[int | None]:
        """None: anything, since it is a clock's."""
        assert isinstance(one.task, Record)
        found: list[int | None] = [number + 1, one.task.site]
        for word in self.words:
            match word:
                case Clock():
                    found.append(None)
                case Constant(value):
                    found.append(value % (1 << 64))
                case Register(register):
                    found.append(one.address + delta if register == RIP else state.values[register])
        return found

    @property
    def _size(self) -> int:
        return WORD * (2 + len(self.words))


def matches(record: list[int], expected: list[int | None]) -> bool:
    return all(
        value in (wanted, *([value] if wanted is None else [])) for value, wanted in zip(record, expected, strict=True)
    )


def drawn_words(choose: random.Random) -> GIVEN:
    return tuple(choose.sample(ALL_WORDS, choose.randrange(6)))


def drawn_dead(choose: random.Random) -> int:
    return choose.choice((0, EVERYTHING, choose.getrandbits(22), choose.getrandbits(22) & choose.getrandbits(22)))


@pytest.mark.parametrize("words", [ALL_WORDS, None], ids=["all words", "some words"])
def test_what_is_recorded(words: GIVEN | None) -> None:
    choose = random.Random(1)
    for _ in range(60):
        chosen = drawn_words(choose) if words is None else words
        one, delta = site(chosen, drawn_dead(choose), number=choose.randrange(9)), moved_by(choose)
        trampoline = trampoline_of(GENERATOR, [one], SITE + APART)
        start = SITE + APART + delta
        guest = Guest({start: trampoline})
        ring = Ring(guest, chosen, SITE + 2 * APART + delta)
        first = choose.choice((0, 2**32 - 1, choose.getrandbits(40)))
        ring.start(first)
        for number in range(first, first + CAPACITY + 2):
            state = drawn(choose, start)
            guest.run(state, range(start, start + len(trampoline)))
            assert ring.begun == number + 1
            assert matches(ring.record(number), ring.expected(number, one, state, delta)), one


@pytest.mark.parametrize("words", [(), ALL_WORDS], ids=["no words", "all words"])
def test_a_place_that_somebody_still_writes_to_is_left_alone(words: GIVEN) -> None:
    """As if an interrupt's handler had recorded a whole turn of the ring."""
    choose = random.Random(5)
    one = site(words, 0)
    trampoline = trampoline_of(GENERATOR, [one], SITE + APART)
    guest = Guest({SITE + APART: trampoline})
    ring = Ring(guest, words)
    ring.start(CAPACITY + 1)
    taken = TAKEN.to_bytes(WORD, "little") + bytes(range(16))
    guest.write(ring.place(1), taken)
    before = guest.read(ring.address + WORD, ring.place(CAPACITY) - ring.address - WORD)
    guest.run(drawn(choose, SITE + APART), range(SITE + APART, SITE + APART + len(trampoline)))
    assert ring.begun == CAPACITY + 2
    assert guest.read(ring.address + WORD, len(before)) == before


def trace(one: Covered, choose: random.Random) -> str:
    return Moved([one], moved_by(choose)).differences(choose, lambda address: one.dead)


@pytest.mark.parametrize("has_stack", [True, False])
def test_a_record_leaves_no_trace(*, has_stack: bool) -> None:
    choose, refused = random.Random(2), 0
    for _ in range(120):
        one = site(drawn_words(choose), drawn_dead(choose), has_stack=has_stack)
        try:
            assert trace(one, choose) == "", one
        except ImmovableError as error:
            assert "no dead register" in str(error)
            refused += 1
    assert refused == 0 if has_stack else 20 < refused < 100


def test_tickets_are_taken_by_one_instruction() -> None:
    choose = random.Random(4)
    for _ in range(50):
        trampoline = trampoline_of(GENERATOR, [site(drawn_words(choose), drawn_dead(choose))], SITE + APART)
        lines = [line.text for line in disassemble(AMD64, trampoline, SITE + APART)]
        shared = [text for text in lines if "(%rip)" in text and not text.startswith("lea")]
        assert [text.split(" %")[0] for text in shared] == ["lock xaddq"]
        assert [text.split()[1] for text in lines if text.startswith("lock")] == ["xaddq", "btsq"]


def test_what_no_trampoline_records() -> None:
    with pytest.raises(ImmovableError, match="rflags cannot be recorded"):
        trampoline_of(GENERATOR, [site((Register(AMD64.registers.index("rflags")),), 0)], SITE + APART)


@pytest.mark.parametrize("dead", [0, EVERYTHING, 0b11 << 10], ids=["nothing dead", "all dead", "r10 and r11 dead"])
@pytest.mark.parametrize("is_interrupt", [True, False], ids=["interrupt", "other CPU"])
@pytest.mark.parametrize("has_clock", [True, False], ids=["clock", "no clock"])
def test_another_record_between_any_two_instructions(*, dead: int, is_interrupt: bool, has_clock: bool) -> None:
    """An interrupt's handler runs on the same stack, and gives all registers back; another CPU has its own."""
    choose = random.Random(3)
    words: GIVEN = (*((Clock(),) if has_clock else ()), *(Register(number) for number in (RAX, 2, 7, RSP, 11)))
    sites = [site(words, dead, number=number) for number in (1, 2)]
    code = {one.address + APART: trampoline_of(GENERATOR, [one], one.address + APART) for one in sites}
    starts, inside = list(code), {at + byte for at, content in code.items() for byte in range(len(content))}
    for cut in range(100):
        guest = Guest(code)
        ring = Ring(guest, words)
        ring.start(0)
        state, other = (drawn(choose, start) for start in starts)
        halfway = guest.run(state, inside, cut)
        is_done = ring.record(0)[0] not in (0, TAKEN)
        assert not is_done or matches(ring.record(0), ring.expected(0, sites[0], state)), "not the last word"
        if is_interrupt:
            other = replace(other, values={**other.values, RSP: halfway.values[RSP] - 0x100})
        guest.run(other, inside)
        end = guest.run(halfway, inside)
        if len(guest.path) == 0:
            break
        order = [(sites[0], state), (sites[1], other)]
        is_first = ring.record(0)[1] == 1
        for number, (one, seen) in enumerate(order if is_first else order[::-1]):
            assert matches(ring.record(number), ring.expected(number, one, seen)), cut
        pushed = replace(end, values={**end.values, RSP: end.values[RSP] + WORD})
        assert pushed.differs(state) & ~sites[0].dead == 0
        assert guest.word(end.values[RSP]) == state.values[GENERAL.index("rbp")]
    assert 10 < cut < 60
