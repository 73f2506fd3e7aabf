/* %c is for integers. */
BEGIN { printf("%c", "a"); }
