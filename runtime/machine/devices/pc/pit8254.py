"""The PC's interval timer (Intel 8254): ports 0x40-0x43 and the gate in port 0x61 -> counts and timer interrupts.

The registers and the waveforms of the modes are those of Intel's data sheet 231244. Counts are computed from the clock
when they are read; nothing happens between two edges of an output.
"""

from dataclasses import dataclass
from typing import Final

from kinst.runtime.machine.device import Clock, Line

FREQUENCY: Final = 1_193_182  # Hz, a twelfth of the NTSC colour crystal
_SECOND: Final = 1_000_000_000
_LOWERED, _RAISED = False, True

# The control word, port 0x43 (data sheet figure 7), and the read-back command (figure 11):
#
#   7   6   5   4   3   2   1   0           7   6    5       4       3    2    1    0
#   channel  access      mode   BCD         1   1  ~count ~status  ch 2 ch 1 ch 0   0
_READ_BACK: Final = 3
_LATCH, _LOW, _HIGH, _BOTH = range(4)


@dataclass(slots=True)
class _Channel:
    """One counter. `start` is the clock's time (ns) when the current count was loaded."""

    mode: int = 3
    access: int = _BOTH
    bcd: bool = False
    reload: int = 0x10000
    start: int | None = 0  # None: a mode was set but no count, or the gate stops it
    gate: bool = True
    held: int = 0  # the count when the gate went low
    pending_low: int | None = None  # the first byte of a two-byte write
    latched: list[int] | None = None
    read_high: bool = False

    def ticks(self, now: int) -> int:
        """The input clocks since the count was loaded."""
        return 0 if self.start is None else (now - self.start) * FREQUENCY // _SECOND

    def count(self, now: int) -> int:
        """The 16 bits that reading the counter gives."""
        if self.start is None:
            return self.held & 0xFFFF
        ticks = self.ticks(now)
        if self.mode == 2:
            value = self.reload - ticks % self.reload
        elif self.mode == 3:
            # Counts down by two, once for each half of the square wave.
            value = (self.reload - 2 * ticks % self.reload) & ~1
        else:
            value = self.reload - ticks
        return _to_bcd(value) if self.bcd else value & 0xFFFF

    def output(self, now: int) -> bool:
        """The level of OUT (data sheet figures 15 to 20)."""
        ticks = self.ticks(now)
        if self.mode == 2:
            return self.start is None or ticks % self.reload != self.reload - 1
        if self.mode == 3:
            return self.start is None or ticks % self.reload < (self.reload + 1) // 2
        return self.start is not None and ticks >= self.reload

    def next_rise(self, after: int) -> int | None:
        """The first time (ns) after `after` at which OUT goes high by itself; None if it never does."""
        if self.start is None:
            return None
        if self.mode not in (2, 3):
            due = self.start + _nanoseconds(self.reload)
            return due if due > after else None
        due = self.start + _nanoseconds(self.reload * (self.ticks(after) // self.reload + 1))
        return due if due > after else self.start + _nanoseconds(self.reload * (self.ticks(after) // self.reload + 2))


def _nanoseconds(ticks: int) -> int:
    """The time of that many input clocks, rounded up, so that `ticks` gives the same number for it."""
    return -(-ticks * _SECOND // FREQUENCY)


def _from_bcd(word: int) -> int:
    """The value of four BCD digits. Guests may also write digits above 9."""
    return sum((word >> 4 * digit & 15) * 10**digit for digit in range(4))


def _to_bcd(value: int) -> int:
    return int(str(value % 10000), 16)


class Pit8254:
    """The three channels. Channel 0 drives `line` (IRQ 0); channel 2 is read and gated through `SpeakerPort`."""

    size = 4

    def __init__(self, clock: Clock, line: Line) -> None:
        self._clock = clock
        self._line = line
        self._channels = (_Channel(), _Channel(), _Channel(gate=False, start=None))
        self._seen = 0  # ns: edges of channel 0 up to this time were delivered
        self._line(self._channels[0].output(clock.now()))

    def read(self, offset: int, size: int) -> int:
        """A byte of a latched status or count, or else of the running count. Port 0x43 cannot be read."""
        if offset == 3:
            return 0xFF
        channel = self._channels[offset]
        if channel.latched:
            return channel.latched.pop(0)
        count = channel.count(self._clock.now())
        if channel.access == _BOTH:
            channel.read_high = not channel.read_high
            return count & 0xFF if channel.read_high else count >> 8
        return count >> 8 if channel.access == _HIGH else count & 0xFF

    def write(self, offset: int, size: int, value: int) -> None:
        """A control word, or a byte of a count. A count takes effect with its last byte."""
        if offset == 3:
            self._control(value)
            return
        channel = self._channels[offset]
        if channel.access == _BOTH and channel.pending_low is None:
            channel.pending_low = value
            return
        count = value << 8 if channel.access == _HIGH else value
        if channel.access == _BOTH:
            count = value << 8 | (channel.pending_low or 0)
            channel.pending_low = None
        if channel.bcd:
            count = _from_bcd(count)
        # A count of 0 is 2^16, or 10^4 in BCD.
        channel.reload = count or (10000 if channel.bcd else 0x10000)
        self._restart(channel)

    def deadline(self) -> int | None:
        """The time (ns) of the next rising edge of channel 0; None if there is none."""
        return self._channels[0].next_rise(self._seen)

    def advance(self) -> None:
        """Raise IRQ 0 for the edges since the last time. As on real hardware, edges that were not taken become one."""
        now = self._clock.now()
        due = self._channels[0].next_rise(self._seen)
        self._seen = now
        if due is not None and due <= now:
            self._line(_LOWERED)
            self._line(_RAISED)

    def output(self, channel: int) -> bool:
        """The level of a channel's OUT."""
        return self._channels[channel].output(self._clock.now())

    def set_gate(self, channel: int, *, level: bool) -> None:
        """Set a channel's GATE. Low stops the count; a rising edge restarts it in modes 1, 2, 3 and 5."""
        counter = self._channels[channel]
        now = self._clock.now()
        if level and not counter.gate:
            elapsed = 0 if counter.mode in (1, 2, 3, 5) else counter.reload - counter.held
            counter.start = now - _nanoseconds(elapsed)
        elif counter.gate and not level and counter.mode in (0, 2, 3, 4):
            counter.held = counter.count(now)
            counter.start = None
        counter.gate = level

    def _control(self, word: int) -> None:
        if word >> 6 == _READ_BACK:
            for number, channel in enumerate(self._channels):
                if word >> (number + 1) & 1:
                    self._latch(channel, count=not word & 0x20, status=not word & 0x10)
            return
        channel = self._channels[word >> 6]
        if word >> 4 & 3 == _LATCH:
            self._latch(channel, count=True, status=False)
            return
        channel.access = word >> 4 & 3
        channel.mode = word >> 1 & 7
        if channel.mode > 5:
            channel.mode -= 4  # modes 2 and 3 ignore bit 2
        channel.bcd = bool(word & 1)
        channel.start = channel.pending_low = channel.latched = None
        channel.held = 0
        channel.read_high = False
        if channel is self._channels[0]:
            self._line(channel.mode != 0)  # OUT is low in mode 0 until the count is reached, else high

    def _latch(self, channel: _Channel, *, count: bool, status: bool) -> None:
        """Latch the count or status. A latched value stays until it is read."""
        if channel.latched:
            return
        now = self._clock.now()
        kept: list[int] = []
        if status:
            kept.append(
                channel.output(now) << 7
                | (channel.start is None) << 6
                | channel.access << 4
                | channel.mode << 1
                | channel.bcd
            )
        if count:
            value = channel.count(now)
            kept += {_LOW: [value & 0xFF], _HIGH: [value >> 8]}.get(channel.access, [value & 0xFF, value >> 8])
        channel.latched = kept

    def _restart(self, channel: _Channel) -> None:
        now = self._clock.now()
        channel.held = channel.reload
        channel.start = now if channel.gate else None
        if channel is self._channels[0]:
            self._seen = now
            self._line(channel.mode not in (0, 4))


class SpeakerPort:
    """Port 0x61: the gate of channel 2, its output, and the memory refresh toggle (every 15 microseconds).

    7       6      5     4        3      2      1       0
    parity iochk  OUT2  refresh  iochk  parity speaker GATE2
    """

    size = 1

    def __init__(self, pit: Pit8254, clock: Clock) -> None:
        self._pit = pit
        self._clock = clock
        self._control = 0

    def read(self, offset: int, size: int) -> int:
        """The two writable bits, refresh and OUT2."""
        refresh = self._clock.now() // 15_085 & 1
        return self._control | refresh << 4 | self._pit.output(2) << 5

    def write(self, offset: int, size: int, value: int) -> None:
        """Gate and speaker bits."""
        self._control = value & 3
        self._pit.set_gate(2, level=bool(value & 1))
