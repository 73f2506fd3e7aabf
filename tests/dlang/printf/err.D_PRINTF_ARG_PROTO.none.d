/* Each conversion wants an argument. */
BEGIN { printf("%d"); }
