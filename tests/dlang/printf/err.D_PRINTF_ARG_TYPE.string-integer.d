/* %s is for strings. */
BEGIN { printf("%s", 1); }
