/* %lx is for unsigned long. */
BEGIN { printf("%lx", (long)1); }
