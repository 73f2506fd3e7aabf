/* %ws is for wide characters. */
BEGIN { printf("%ws", "abc"); }
