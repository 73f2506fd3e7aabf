/* %hd is for short and nothing else. */
BEGIN { printf("%hd", 1); }
