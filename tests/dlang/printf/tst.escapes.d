/* The escapes of the lexer in the format. */
#pragma D option quiet
BEGIN { printf("a\tb\\c\"d\'e\?f\101\x42\n"); exit(0); }
