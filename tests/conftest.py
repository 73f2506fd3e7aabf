"""What holds for all tests of a process."""

import gc


def pytest_collection_finish() -> None:
    """The tests themselves are never garbage: each run of a guest looks for some, and would look at half a million
    objects."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """What is frozen is not cleared away at the end, which LIEF's bindings take for a leak."""
    gc.unfreeze()
