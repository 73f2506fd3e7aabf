/* Characters of a string by index and pointer. */
#pragma D option quiet

BEGIN { s = "hello"; printf("%c %d %s\n", s[1], s[5], s + 3); exit(0); }
