"""Where an SD card is: host controllers that have the same socket share its card, and pins may lead to one of them."""

from kinst.runtime.machine.devices.sd.card import SdCard


class Socket:
    """A socket with a card, or without one."""

    def __init__(self, card: SdCard | None = None) -> None:
        """No pins were chosen: every controller has the card."""
        self._card, self._host = card, ""

    def lead_to(self, host: str) -> None:
        """From now on the pins lead to the controller of a kind."""
        self._host = host

    def card(self, host: str) -> SdCard | None:
        """The card, as a controller of a kind sees it."""
        return self._card if self._host in ("", host) else None
