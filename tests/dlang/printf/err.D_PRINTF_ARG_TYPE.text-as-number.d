/* %d takes a number. */
BEGIN { printf("%d", "text"); }
