/* One precision is enough. */
BEGIN { printf("%3.4.5d", 1); }
