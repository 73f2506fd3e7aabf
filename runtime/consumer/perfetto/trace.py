"""Tracks, spans, instants and counters -> TracePackets of a Perfetto trace, each written at once.

The only file that uses the package `perfetto`, Google's own, which has the classes of the format:
https://perfetto.dev/docs/reference/trace-packet-proto, and .../reference/synthetic-track-event for what packets mean.
"""

from collections.abc import Mapping
from typing import Any, BinaryIO, Final

from kinst.runtime.consumer.documents.json_values import Json
from kinst.targets.errors import KinstError

try:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import DebugAnnotation, TracePacket, TrackEvent
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
except ImportError as error:
    raise KinstError(
        f"--format perfetto: needs the Python package perfetto ({error}): pip install 'kinst-rewrite[perfetto]'"
    ) from error

_SEQUENCE: Final = 1  # all packets come from one writer
_INTEGERS: Final = range(-(1 << 63), 1 << 63)
Track = int  # the uuid of a track; 0 is the parent of those at the top


class PerfettoTrace:
    """A trace that is being written. Times are ns; what happens on one track is written in the order of time."""

    def __init__(self, output: BinaryIO) -> None:
        """Write the packet that begins a sequence. Without SEQ_INCREMENTAL_STATE_CLEARED readers assume that packets
        were lost, and silently skip the rest."""
        self._builder = StreamingTraceProtoBuilder(output)
        self._tracks = 0
        first = self._packet()
        first.sequence_flags, first.first_packet_on_sequence = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, True
        self._write(first)

    # -- tracks -------------------------------------------------------------------------------------------------------

    def track(self, name: str, parent: Track = 0, *, is_counter: bool = False) -> Track:
        """A new track for spans and instants, or for a counter."""
        descriptor = self._descriptor(parent)
        descriptor.track_descriptor.name = name
        if is_counter:
            descriptor.track_descriptor.counter.SetInParent()
        return self._described(descriptor)

    def process(self, pid: int, name: str, known: Track = 0) -> Track:
        """A process, the parent of its threads' tracks. `known` is its track, if it only gets another name."""
        descriptor = self._descriptor(0, known)
        descriptor.track_descriptor.process.pid = pid
        descriptor.track_descriptor.process.process_name = name
        return self._described(descriptor)

    def thread(self, pid: int, tid: int, name: str, process: Track, known: Track = 0) -> Track:
        """A track for what a thread does. `known` is its track, if it only gets another name."""
        descriptor = self._descriptor(process, known)
        thread = descriptor.track_descriptor.thread
        thread.pid, thread.tid, thread.thread_name = pid, tid, name
        return self._described(descriptor)

    def _descriptor(self, parent: Track, known: Track = 0) -> Any:
        packet = self._packet()
        if not known:
            self._tracks += 1
        packet.track_descriptor.uuid = known or self._tracks
        if parent:
            packet.track_descriptor.parent_uuid = parent
        return packet

    def _described(self, packet: Any) -> Track:
        self._builder.write_packet(packet)
        uuid: int = packet.track_descriptor.uuid
        return uuid

    # -- what happens on them -----------------------------------------------------------------------------------------

    def begin(self, track: Track, time: int, name: str, category: str, arguments: Mapping[str, Json]) -> None:
        """Begin a span."""
        self._named(TrackEvent.TYPE_SLICE_BEGIN, track, time, name, category, arguments)

    def end(self, track: Track, time: int, arguments: Mapping[str, Json]) -> None:
        """End the innermost span; `arguments` are added to those of its beginning."""
        self._write(self._event(TrackEvent.TYPE_SLICE_END, track, time, arguments))

    def instant(self, track: Track, time: int, name: str, category: str, arguments: Mapping[str, Json]) -> None:
        """Add an event without a duration."""
        self._named(TrackEvent.TYPE_INSTANT, track, time, name, category, arguments)

    def count(self, track: Track, time: int, value: int) -> None:
        """Set a counter to a value (64 bits, signed)."""
        packet = self._event(TrackEvent.TYPE_COUNTER, track, time, {})
        packet.track_event.counter_value = value
        self._write(packet)

    def _named(
        self, kind: int, track: Track, time: int, name: str, category: str, arguments: Mapping[str, Json]
    ) -> None:
        packet = self._event(kind, track, time, arguments)
        packet.track_event.name = name
        packet.track_event.categories.append(category)
        self._write(packet)

    def _event(self, kind: int, track: Track, time: int, arguments: Mapping[str, Json]) -> Any:
        packet = self._packet()
        packet.timestamp = time
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        for name, value in arguments.items():
            _annotate(event.debug_annotations.add(name=name), value)
        return packet

    def _packet(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _write(self, packet: Any) -> None:
        self._builder.write_packet(packet)


def _annotate(annotation: "DebugAnnotation", value: Json) -> None:
    """Give an argument its value."""
    match value:
        case bool():
            annotation.bool_value = value
        case int() if value in _INTEGERS:
            annotation.int_value = value
        case int():
            annotation.uint_value = value
        case dict():
            for name, part in value.items():
                _annotate(annotation.dict_entries.add(name=name), part)
        case list():
            for part in value:
                _annotate(annotation.array_values.add(), part)
        case _:
            annotation.string_value = "" if value is None else str(value)
