/* A percent sign in text is no conversion. */
#pragma D option quiet

BEGIN { s = "100%d"; printf("%s %d%%\n", s, 5); exit(0); }
