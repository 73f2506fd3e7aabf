/* %c is for integers of at most an int's size. */
BEGIN { printf("%c", (long)'a'); }
