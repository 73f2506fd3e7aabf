"""CTF, the Compact C Type Format: of kernels of illumos and FreeBSD (.SUNW_ctf), and of gcc -gctf (.ctf)."""
