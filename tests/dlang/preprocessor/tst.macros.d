/* @options: -C

   Macros with arguments, of several lines, and within others. */
#pragma D option quiet

#define SQUARE(x) ((x) * (x))
#define BOTH(a, b) \
	printf("%d %d\n", a, b)
#define PROBE BEGIN
#define KEYED(k) @counts[k] = count()

PROBE
{
	BOTH(SQUARE(3), SQUARE(1 + 1));
	KEYED("x"); KEYED("x");
	printa("%s %@d\n", @counts);
	exit(0);
}
