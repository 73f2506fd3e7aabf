/* %d is for integers. */
BEGIN { printf("%d", "one"); }
