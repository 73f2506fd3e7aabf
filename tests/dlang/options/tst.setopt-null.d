/* NULL is no option. */
#pragma D option quiet

string s;

BEGIN { s = NULL; }
BEGIN { setopt(s); printf("never"); }
BEGIN { setopt("quiet", s); printf("never"); }
BEGIN { s = ""; setopt("quiet", s); trace(1); exit(0); }
ERROR { printf("%d ", arg4 == DTRACEFLT_BADADDR); }
