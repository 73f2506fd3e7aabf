"""How the hits of an image's sites are delivered -> the lines that -x explain prints."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kinst.runtime.hits.deciding import SiteDeliveries
from kinst.runtime.trap.delivery import Delivery, Way

_DELIVERED: Final = {
    Way.BLOCK: "counted where blocks of code begin, without a breakpoint",
    Way.COUNT: "counted",
    Way.RECORD: "batched, once for all that are alike",
    Way.REPLAY: "batched, one by one in their order",
    Way.DISPATCH: "dispatched",
}


def delivery_text(delivery: Delivery) -> str:
    """How hits are delivered, and if they are dispatched why."""
    why = f": {delivery.why}" if delivery.way is Way.DISPATCH and delivery.why else ""
    return f"hits are {_DELIVERED[delivery.way]}{why}"


def explained(deliveries: SiteDeliveries, is_wanted: NDArray[np.bool_], is_deferred: NDArray[np.bool_]) -> list[str]:
    """A line for each delivery of the wanted sites; of those that are dispatched, one for each reason.

    Args:
        deliveries: of all sites.
        is_wanted: which sites have an enabled probe.
        is_deferred: at which sites the guest itself writes.
    """
    every = int(np.count_nonzero(is_wanted))
    lines = [f"at {count:,} of {every:,} sites {delivery_text(one)}" for one, count in deliveries.counted(is_wanted)]
    deferred = int(np.count_nonzero(is_wanted & is_deferred))
    if deferred:
        lines.append(f"of all these, {deferred:,} depend on what the guest writes there")
    return lines
