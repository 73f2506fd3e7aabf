"""The shells whose words can be completed, and how their scripts ask a command."""

from typing import Final

SHELLS: Final = ("bash", "zsh", "fish")
ASKING: Final = "KINST_COMPLETE"  # the environment variable that names the shell
