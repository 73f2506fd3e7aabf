"""Interface stability, as `dtrace -lv` shows it for a probe and its arguments (dtrace_attribute_t, dtrace_pattr_t)."""

from enum import IntEnum

from kinst.targets.values import dataclass


class Stability(IntEnum):
    """How far a name or a meaning can be relied on, from least to most (DTRACE_STABILITY_*)."""

    INTERNAL = 0
    PRIVATE = 1
    OBSOLETE = 2
    EXTERNAL = 3
    UNSTABLE = 4
    EVOLVING = 5
    STABLE = 6
    STANDARD = 7

    @property
    def title(self) -> str:
        """The word that is printed for it."""
        return self.name.capitalize()


class Dependency(IntEnum):
    """Which systems share a name or a meaning, from fewest to most (DTRACE_CLASS_*)."""

    UNKNOWN = 0
    CPU = 1
    PLATFORM = 2
    GROUP = 3
    ISA = 4
    COMMON = 5

    @property
    def title(self) -> str:
        """The word that is printed for it."""
        return self.name if len(self.name) == 3 else self.name.capitalize()


@dataclass(frozen=True, slots=True)
class Attributes:
    """One triple, which is printed as ``Evolving/Evolving/Common``."""

    name: Stability
    data: Stability
    dependency: Dependency

    def __str__(self) -> str:
        return f"{self.name.title}/{self.data.title}/{self.dependency.title}"

    def weakest(self, other: "Attributes") -> "Attributes":
        """The weaker value of each part (dt_attr_min)."""
        return Attributes(
            min(self.name, other.name), min(self.data, other.data), min(self.dependency, other.dependency)
        )


STABLE = Attributes(Stability.STABLE, Stability.STABLE, Dependency.COMMON)
EVOLVING = Attributes(Stability.EVOLVING, Stability.EVOLVING, Dependency.COMMON)
EVOLVING_ISA = Attributes(Stability.EVOLVING, Stability.EVOLVING, Dependency.ISA)
UNSTABLE = Attributes(Stability.UNSTABLE, Stability.UNSTABLE, Dependency.UNKNOWN)
PRIVATE = Attributes(Stability.PRIVATE, Stability.PRIVATE, Dependency.UNKNOWN)
PRIVATE_ISA = Attributes(Stability.PRIVATE, Stability.PRIVATE, Dependency.ISA)


@dataclass(frozen=True, slots=True)
class ProviderAttributes:
    """What a provider promises for its own name, the other fields of its probes' names, and their arguments."""

    provider: Attributes
    module: Attributes
    function: Attributes
    name: Attributes
    arguments: Attributes

    def description(self, module: str, function: str) -> Attributes:
        """The attributes of a whole description: the weakest of the fields that it has (dt_probe_info)."""
        found = self.provider.weakest(self.name)
        if module:
            found = found.weakest(self.module)
        return found.weakest(self.function) if function else found
