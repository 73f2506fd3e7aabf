"""How far a guest is with its memory: what an address means depends on it."""

from enum import Enum


class Stage(Enum):
    """How far the guest has set up its memory."""

    LOADED = "loaded"  # it has not run yet
    PHYSICAL = "physical"  # it does not translate, or uses tables that its loader made
    TRANSLATED = "translated"  # only what its own tables map is memory
