/* Positional arguments are not supported. */
BEGIN { printf("%1$d", 1); }
