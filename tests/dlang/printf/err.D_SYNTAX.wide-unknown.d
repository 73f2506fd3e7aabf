/* A size may not stand before any name. */
BEGIN { printf("%hhd", (char)1); }
