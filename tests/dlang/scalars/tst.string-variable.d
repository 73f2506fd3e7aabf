/* A string variable holds a copy, and is empty before. */
#pragma D option quiet

string s;

BEGIN { printf("[%s]", s); s = "one"; t = s; s = "two"; printf(" %s %s\n", t, s); exit(0); }
