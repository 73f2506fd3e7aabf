/* Bytes that are all text, with NULs behind them, are taken for text. */
#pragma D option quiet

struct three {
	int first;
	int second;
	int third;
};

struct three t;

BEGIN
{
	t.first = 0x64636261;
	t.second = 0x65;
	trace(t);
	exit(0);
}
