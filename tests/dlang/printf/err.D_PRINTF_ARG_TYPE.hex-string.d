/* %x is for integers. */
BEGIN { printf("%x", execname); }
