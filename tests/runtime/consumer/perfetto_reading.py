"""A Perfetto trace -> its tracks, read by Google's own classes, and what trace_processor would make of the events."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent


@dataclass
class Span:
    name: str
    start: int
    depth: int
    end: int = -1
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class Track:
    spans: list[Span] = field(default_factory=list)
    instants: list[Span] = field(default_factory=list)
    values: list[tuple[int, int]] = field(default_factory=list)


def value_of(annotation: Any) -> Any:
    if annotation.array_values:
        return [value_of(one) for one in annotation.array_values]
    if annotation.dict_entries:
        return {one.name: value_of(one) for one in annotation.dict_entries}
    return getattr(annotation, annotation.WhichOneof("value"))


def tracks_of(path: Path) -> dict[str, Track]:
    """Tracks by path (`parent/name`). Events are taken in the order of time, and of the file where times are equal, as
    trace_processor does; ends without a beginning and spans that are left open are errors here."""
    trace = Trace.FromString(path.read_bytes())
    assert trace.packet[0].sequence_flags == TracePacket.SEQ_INCREMENTAL_STATE_CLEARED  # else all is skipped
    assert {packet.trusted_packet_sequence_id for packet in trace.packet} == {
        trace.packet[0].trusted_packet_sequence_id
    }
    names = _names([packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")])
    found: defaultdict[str, Track] = defaultdict(Track)
    open_spans: defaultdict[str, list[Span]] = defaultdict(list)
    events = [packet for packet in trace.packet if packet.HasField("track_event")]
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        name = names[packet.track_event.track_uuid]
        _take(packet.timestamp, packet.track_event, found[name], open_spans[name])
    assert not any(open_spans.values())
    return dict(found)


def _names(descriptors: list[Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    for one in descriptors:
        if one.HasField("thread"):
            own = f"{one.thread.thread_name} {one.thread.pid}/{one.thread.tid}"
        else:
            own = f"{one.process.process_name} {one.process.pid}" if one.HasField("process") else one.name
        names[one.uuid] = f"{names[one.parent_uuid]}/{own}" if one.parent_uuid else own
    return names


def _take(time: int, event: Any, track: Track, stack: list[Span]) -> None:
    arguments = {one.name: value_of(one) for one in event.debug_annotations}
    match event.type:
        case TrackEvent.TYPE_SLICE_BEGIN:
            span = Span(event.name, time, len(stack), arguments=arguments)
            stack.append(span)
            track.spans.append(span)
        case TrackEvent.TYPE_SLICE_END:
            span = stack.pop()
            span.end = time
            span.arguments |= arguments
        case TrackEvent.TYPE_INSTANT:
            track.instants.append(Span(event.name, time, len(stack), time, arguments))
        case _:
            track.values.append((time, event.counter_value))
