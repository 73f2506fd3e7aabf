/* A precision is a number. */
BEGIN { printf("%.*s", "5", "abc"); }
