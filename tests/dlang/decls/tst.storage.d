/* extern, const and volatile are taken. */
#pragma D option quiet

const int c;
volatile int v;
unsigned long long ull;
long unsigned lu;

BEGIN { v = 2; ull = 3; printf("%d %d %d\n", v, sizeof (ull), sizeof (lu)); exit(0); }
