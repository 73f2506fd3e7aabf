/* A string has at most strsize bytes, and needs no NUL then. */
#pragma D option quiet
#pragma D option strsize=6
BEGIN { s = "abcdefgh"; printf("%s|%d\n", s, strlen(s)); exit(0); }
