/* @options: -x dynvarsize=0

   Globals and clause-local variables are none. */
#pragma D option quiet

int g;
this int t;
BEGIN { g = 1; this->t = 2; h = 3; printf("%d %d %d\n", g, this->t, h); exit(0); }
