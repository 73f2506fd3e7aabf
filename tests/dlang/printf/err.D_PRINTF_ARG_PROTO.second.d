/* Each conversion wants an argument. */
BEGIN { printf("%d %s", 1); }
