"""QEMU counts with a plugin of ours: an independent count of the same run."""
