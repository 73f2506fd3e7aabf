/* NULL equals the empty string, and joins nothing. */
#pragma D option quiet

string s;
BEGIN { s = NULL; printf("%d %d\n", s == "", s == NULL); s = "x"; printf("%d\n", s != NULL); exit(0); }
