/* Widths from arguments, of both signs. */
#pragma D option quiet

BEGIN { printf("[%*d][%-*d][%*d][%.*s]\n", 4, 1, 4, 2, -4, 3, 2, "xyz"); exit(0); }
