"""What ran of some images, as values: what every format of --coverage is written from, and what JSON is read to."""

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final

from kinst.targets.values import dataclass

if TYPE_CHECKING:
    from kinst.runtime.coverage.call_order import CallOrder  # with numpy, which --help can do without


class Granularity(Enum):
    """What is listed of a function."""

    FUNCTIONS = "functions"
    BLOCKS = "blocks"
    INSTRUCTIONS = "instructions"


DEFAULT_GRANULARITY: Final = Granularity.BLOCKS


@dataclass(frozen=True, slots=True)
class CoverageRequest:
    """What is to be known of what runs: what is listed of functions, and whether the order of all calls is kept."""

    granularity: Granularity
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions of a function that follow each other and ran equally often; a single one, if these are listed."""

    offset: int  # from the function's start, in bytes
    size: int  # bytes
    index: int  # the number of its first instruction in the function
    instructions: int
    runs: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `instructions` and `executed` are 0 if it did not run: then nobody has decoded it."""

    name: str
    address: int  # as it was linked
    size: int
    instructions: int
    executed: int  # of its instructions
    runs: int  # of its first instruction
    rank: int  # 1: the first function that ran, 2: the next; 0: it did not run
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class CoveredImage:
    """An image. `elsewhere`: address, size and runs of its code that is in no known function. `unknown`: address and
    size of code that could not be counted: it may have run, or more often than is said."""

    module: str
    path: str
    machine: str
    digest: str  # of its code: the same image has the same
    base: int  # the address that its loaded part begins with
    end: int
    entry: int
    functions: tuple[Function, ...]
    elsewhere: tuple[tuple[int, int, int], ...]
    unknown: tuple[tuple[int, int], ...] = ()

    @property
    def ran(self) -> Iterator[Function]:
        """The functions that ran."""
        return (one for one in self.functions if one.rank)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What some runs did. `outside`: how many different blocks ran that are in no image. `calls`: of one run, in
    order; empty if that was not kept. Without `has_order`, ranks are not those in which functions first ran."""

    granularity: Granularity
    runs: int
    images: tuple[CoveredImage, ...]
    outside: int
    calls: "tuple[CallOrder, ...]" = ()
    has_order: bool = True

    @property
    def names(self) -> Iterator[str]:
        """The functions of all images, one after the other, as module`function, each with a name of its own: of
        several of a name, those behind the first have a number."""
        seen, taken = Counter[str](), set[str]()
        for image in self.images:
            for one in image.functions:
                shown = name = f"{image.module}`{one.name}"
                seen[name] += 1
                while shown in taken:
                    shown = f"{name}#{seen[name]}"
                    seen[name] += shown in taken
                taken.add(shown)
                yield shown
