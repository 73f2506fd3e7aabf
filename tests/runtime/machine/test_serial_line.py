"""A serial line in snapshots: who types at it is not in them."""

from kinst.runtime.machine.serial_line import SerialLine
from kinst.runtime.machine.snapshots.devices import restore, state_of
from kinst.runtime.machine.snapshots.object_graph import ObjectGraph


class Nobody:
    """A source of what is typed, from which nothing comes."""

    def look(self) -> None:
        """Nothing is typed."""

    def take(self, size: int) -> bytes:
        return b""

    def descriptor(self, *, is_awaited: bool) -> int | None:
        return None


def graph_of(line: SerialLine) -> ObjectGraph:
    graph = ObjectGraph()
    graph.add("line", line)
    return graph


def test_what_waits_goes_from_a_line_that_is_typed_at_to_one_that_is_not_and_back() -> None:
    typed, alone = SerialLine(), SerialLine()
    typed.attach(Nobody())
    typed.on_wait(lambda: None)
    for source, target, text in ((typed, alone, b"one"), (alone, typed, b"two")):
        source.type(text)
        restore(graph_of(target), state_of(graph_of(source)))
        assert target.take(9) == text
        assert source.take(9) == text
    assert typed.has_sources
    assert not alone.has_sources
