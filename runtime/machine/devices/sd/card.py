"""An SD memory card: commands -> responses, and the blocks of a `Disk` (SD Physical Layer Simplified Specification
3.01, chapter 4).

    idle -> ready -> identification -> standby <-> transfer -> sending, receiving -> transfer

A response is the bytes between its first and its CRC: 4, or 16 of CID and CSD, which have their CRC; none if the card
does not answer, which a host sees as a timeout. What a command did wrong is in the next status that is sent.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from kinst.runtime.machine.devices.sd.card_registers import (
    CID,
    HIGH_CAPACITY,
    POWERED_UP,
    SCR,
    VOLTAGES,
    csd,
    grain,
    is_high_capacity,
    switch_status,
    switched,
    with_checksum,
)
from kinst.runtime.machine.disk import SECTOR, Disk
from kinst.targets.errors import MachineError

OUT_OF_RANGE, BLOCK_LENGTH, PROTECTED, ILLEGAL, FAILED = 1 << 31, 1 << 29, 1 << 26, 1 << 22, 1 << 19  # of the status
_READY, _APPLICATION = 1 << 8, 1 << 5
_PUBLISHED: Final = 0x4567  # the first address that CMD3 publishes
_SD_STATUS: Final = 64
_SELECTED_VOLTAGES: Final = 0x00FF_FFFF  # of ACMD41's argument; none: it only asks


class State(IntEnum):
    """As the status has it (table 4-41); the last one is not seen there."""

    IDLE = 0
    READY = 1
    IDENTIFICATION = 2
    STANDBY = 3
    TRANSFER = 4
    SENDING = 5
    RECEIVING = 6
    INACTIVE = 15


_ADDRESSED: Final = frozenset((State.STANDBY, State.TRANSFER, State.SENDING, State.RECEIVING))  # data transfer mode


class SdCard:
    """The card. A host gives it commands, and bytes of data or takes them."""

    def __init__(self, disk: Disk) -> None:
        """It was just inserted. Raises MachineError: no card has the disk's size."""
        step = grain(disk.size)
        if disk.size % step:
            name, more = disk.name.decode(errors="replace"), -(-disk.size // step) * step
            raise MachineError(
                f"disk {name}: cannot be an SD card: its size, {disk.size:,} bytes, is no multiple of {step:,}: "
                f"truncate -s {more} makes it one"
            )
        self._disk, self._is_high = disk, is_high_capacity(disk.size)
        self._csd, self._cid = csd(disk.size, is_read_only=disk.is_read_only), with_checksum(CID)
        self._state = State.IDLE
        self._reset()

    @property
    def is_read_only(self) -> bool:
        """Whether its switch is at Lock."""
        return self._disk.is_read_only

    @property
    def is_sending(self) -> bool:
        """Whether it has data for the host."""
        return self._state is State.SENDING

    def _reset(self) -> None:
        self._address = self._errors = self._argument = self._written = self._bus = 0
        self._is_application = self._is_powered = self._has_more = False
        self._block, self._place, self._at = SECTOR, 0, 0
        self._data = b""  # what it sends, or has received of a block
        self._functions: tuple[int, ...] = (0,) * 6

    # -- commands -----------------------------------------------------------------------------------------------------

    def command(self, index: int, argument: int) -> bytes:
        """Obey a command. Returns its response."""
        is_application, self._is_application = self._is_application, False
        obey = (_APPLICATION_COMMANDS.get(index) if is_application else None) or _COMMANDS.get(index)
        self._argument, before = argument, self._state
        response = None if obey is None else obey(self, before)
        if response is None:
            self._errors |= ILLEGAL
            return b""
        self._errors &= ~ILLEGAL if response else -1
        return response

    def _status(self, before: State) -> bytes:
        """R1: the state in which it got the command, and what went wrong since the last one."""
        application = _APPLICATION if self._is_application else 0
        status = self._errors | before << 9 | _READY | application
        self._errors = 0
        return status.to_bytes(4, "big")

    def _is_addressed(self) -> bool:
        return self._argument >> 16 == self._address

    def _go_idle(self, before: State) -> bytes:
        if before is not State.INACTIVE:
            self._state = State.IDLE
            self._reset()
        return b""

    def _send_identification(self, before: State) -> bytes | None:
        if before is not State.READY:
            return None
        self._state = State.IDENTIFICATION
        return self._cid

    def _publish(self, before: State) -> bytes | None:
        """R6: a new address, and the low half of the status."""
        if before not in (State.IDENTIFICATION, State.STANDBY):
            return None
        self._state = State.STANDBY
        self._address = self._address + _PUBLISHED & 0xFFFF
        status = int.from_bytes(self._status(before), "big")
        short = status >> 8 & 0xC000 | status >> 6 & 0x2000 | status & 0x1FFF
        return (self._address << 16 | short).to_bytes(4, "big")

    def _switch(self, before: State) -> bytes | None:
        if before is not State.TRANSFER:
            return None
        functions = switched(self._argument, self._functions)
        if self._argument >> 31 and 0xF not in functions:
            self._functions = functions
        return self._send(before, switch_status(functions))

    def _select(self, before: State) -> bytes | None:
        if before is State.STANDBY:
            if not self._is_addressed():
                return b""
            self._state = State.TRANSFER
        elif before in (State.TRANSFER, State.SENDING) and not self._is_addressed():
            self._state = State.STANDBY
        else:
            return None
        return self._status(before)

    def _check_voltage(self, before: State) -> bytes | None:
        if before is not State.IDLE:
            return None
        voltage = self._argument >> 8
        return self._argument.to_bytes(4, "big") if voltage and not voltage & voltage - 1 else b""

    def _send_csd(self, before: State) -> bytes | None:
        return (self._csd if self._is_addressed() else b"") if before is State.STANDBY else None

    def _send_cid(self, before: State) -> bytes | None:
        return (self._cid if self._is_addressed() else b"") if before is State.STANDBY else None

    def _stop(self, before: State) -> bytes | None:
        if before not in (State.SENDING, State.RECEIVING):
            return None
        self._state, self._data, self._has_more = State.TRANSFER, b"", False
        return self._status(before)

    def _tell_status(self, before: State) -> bytes | None:
        return (self._status(before) if self._is_addressed() else b"") if before in _ADDRESSED else None

    def _go_inactive(self, before: State) -> bytes | None:
        if before not in _ADDRESSED:
            return None
        if self._is_addressed():
            self._state = State.INACTIVE
        return b""

    def _set_block_length(self, before: State) -> bytes | None:
        if before is not State.TRANSFER:
            return None
        if 0 < self._argument <= SECTOR:
            self._block = self._argument
        else:
            self._errors |= BLOCK_LENGTH
        return self._status(before)

    def _announce(self, before: State) -> bytes | None:
        """CMD55: the next command is an application's."""
        if before is State.INACTIVE:
            return None
        if not self._is_addressed():
            return b""
        self._is_application = True
        return self._status(before)

    # -- commands of applications: these follow CMD55 -----------------------------------------------------------------

    def _answer(self, before: State) -> bytes:
        """R1 of such a command, which says that it was taken for one."""
        return (int.from_bytes(self._status(before), "big") | _APPLICATION).to_bytes(4, "big")

    def _set_bus(self, before: State) -> bytes | None:
        if before is not State.TRANSFER:
            return None
        self._bus = self._argument & 3
        return self._answer(before)

    def _negotiate(self, before: State) -> bytes | None:
        """ACMD41, R3: the voltages. A host that names some of them powers it up; one that only asks does not."""
        if before is not State.IDLE:
            return None
        if self._argument & _SELECTED_VOLTAGES:
            self._state, self._is_powered = State.READY, True
        powered = POWERED_UP if self._is_powered else 0
        return (VOLTAGES | powered | (HIGH_CAPACITY if self._is_high else 0)).to_bytes(4, "big")

    def _accept(self, before: State) -> bytes | None:
        """ACMD23, ACMD42: of blocks to erase, and of a resistor."""
        return self._answer(before) if before is State.TRANSFER else None

    def _send_sd_status(self, before: State) -> bytes | None:
        return self._send_register(before, bytes((self._bus << 6,)).ljust(_SD_STATUS, b"\0"))

    def _send_written(self, before: State) -> bytes | None:
        return self._send_register(before, self._written.to_bytes(4, "little"))

    def _send_configuration(self, before: State) -> bytes | None:
        return self._send_register(before, SCR)

    def _send_register(self, before: State, register: bytes) -> bytes | None:
        if before is not State.TRANSFER:
            return None
        self._send(before, register)
        return self._answer(before)

    # -- data ---------------------------------------------------------------------------------------------------------

    @property
    def _size(self) -> int:
        """Bytes of a block. One of high capacity has no other."""
        return SECTOR if self._is_high else self._block

    def _send(self, before: State, content: bytes) -> bytes:
        self._state, self._data, self._at, self._has_more = State.SENDING, content, 0, False
        return self._status(before)

    def _begin(self, before: State, state: State, *, has_more: bool) -> bytes | None:
        """The response to CMD17, 18, 24 and 25."""
        if before is not State.TRANSFER:
            return None
        place = self._argument * (SECTOR if self._is_high else 1)
        if place + self._size > self._disk.size:
            self._errors |= OUT_OF_RANGE
            return self._status(before)
        if state is State.RECEIVING and self._disk.is_read_only:
            self._errors |= PROTECTED
            return self._status(before)
        self._state, self._place, self._has_more, self._data, self._at = state, place, has_more, b"", 0
        self._written = 0 if state is State.RECEIVING else self._written
        return self._status(before)

    def _load(self) -> None:
        """The next block to send; none behind the end, or if the disk fails."""
        if self._place + self._size > self._disk.size:
            self._errors |= OUT_OF_RANGE
            return
        content = bytearray(self._size)
        try:
            self._disk.read(self._place, [memoryview(content)])
        except OSError:  # of the host's file
            self._errors |= FAILED
            return
        self._data = bytes(content)
        self._place += self._size

    def read(self, size: int) -> bytes:
        """So many bytes of data; fewer if it has no more: a host that waits for them runs into its timeout."""
        taken = bytearray()
        while self._state is State.SENDING and len(taken) < size:
            if not self._data:
                self._load()
            part = self._data[self._at : self._at + size - len(taken)]
            if not part:
                break
            taken += part
            self._at += len(part)
            if self._at == len(self._data):
                self._sent()
        return bytes(taken)

    def _sent(self) -> None:
        self._data, self._at = b"", 0
        if not self._has_more:
            self._state = State.TRANSFER

    def write(self, data: bytes) -> None:
        """Take bytes of data. A block is stored when it is whole."""
        while data and self._state is State.RECEIVING:
            room = self._size - len(self._data)
            self._data, data = self._data + data[:room], data[room:]
            if len(self._data) == self._size:
                self._store()

    def _store(self) -> None:
        block, self._data = self._data, b""
        if self._place + self._size > self._disk.size:
            self._errors |= OUT_OF_RANGE
        elif not self._errors & FAILED:
            try:
                self._disk.write(self._place, [memoryview(block)])
                self._written += 1
            except OSError:  # of the host's file
                self._errors |= FAILED
        self._place += self._size
        if not self._has_more:
            self._state = State.TRANSFER


# The response; None: it does not obey in this state.
_Obey = Callable[[SdCard, State], bytes | None]


def _reading(*, has_more: bool) -> _Obey:
    return lambda card, before: card._begin(before, State.SENDING, has_more=has_more)


def _writing(*, has_more: bool) -> _Obey:
    return lambda card, before: card._begin(before, State.RECEIVING, has_more=has_more)


_COMMANDS: Final[Mapping[int, _Obey]] = {
    0: SdCard._go_idle,
    2: SdCard._send_identification,
    3: SdCard._publish,
    6: SdCard._switch,
    7: SdCard._select,
    8: SdCard._check_voltage,
    9: SdCard._send_csd,
    10: SdCard._send_cid,
    12: SdCard._stop,
    13: SdCard._tell_status,
    15: SdCard._go_inactive,
    16: SdCard._set_block_length,
    17: _reading(has_more=False),
    18: _reading(has_more=True),
    24: _writing(has_more=False),
    25: _writing(has_more=True),
    55: SdCard._announce,
}
_APPLICATION_COMMANDS: Final[Mapping[int, _Obey]] = {
    6: SdCard._set_bus,
    13: SdCard._send_sd_status,
    22: SdCard._send_written,
    23: SdCard._accept,
    41: SdCard._negotiate,
    42: SdCard._accept,
    51: SdCard._send_configuration,
}
