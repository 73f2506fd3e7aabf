"""The scripts of samples/d/linux, each compared with what the kernel that they watch says itself."""
