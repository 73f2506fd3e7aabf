/* %Y is for 64 bits of nanoseconds. */
BEGIN { printf("%Y", 1); }
