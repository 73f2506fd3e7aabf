/* %ld is for long and nothing else. */
BEGIN { printf("%ld", 1); }
