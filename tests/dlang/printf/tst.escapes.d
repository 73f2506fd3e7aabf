/* The escapes of C in the format. */
#pragma D option quiet
BEGIN { printf("a\tb\\c\"d\'e\?f\101\x42\n"); exit(0); }
