/* A header every 20 lines of a summary, as vmstat-like scripts print it. */
#pragma D option quiet

inline int SCREEN = 4;

int lines;

BEGIN
{
	lines = SCREEN + 1;
	in = 0;
}

tick-10ms
{
	in += 3;
	out = in / 2;
}

profile:::tick-20ms
{
	secs++;
}

tick-50ms
/lines++ > SCREEN/
{
	printf("%8s %8s %8s\n", "in", "out", "%in");
	lines = 0;
}

tick-50ms
{
	printf("%8d %8d %7d%%\n", in, out, in + out ? 100 * in / (in + out) : 0);
	in = 0;
	out = 0;
	total++;
}

tick-50ms
/total == 7/
{
	exit(0);
}
