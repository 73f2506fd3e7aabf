/* A width is a number. */
BEGIN { printf("%*d", "5", 1); }
