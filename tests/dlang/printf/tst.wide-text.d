/* Columns are bytes; longer text is not cut by a width. */
#pragma D option quiet

BEGIN { printf("[%3s][%-6s][%.0s]\n", "abcdef", "ab", "abc"); exit(0); }
