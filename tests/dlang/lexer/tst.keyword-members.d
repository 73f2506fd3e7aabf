/* Keywords are good names for members. */
#pragma D option quiet

struct words {
	int plain;
};

struct words w;

BEGIN
{
	w.plain = 3;
	printf("%d\n", w.plain);
	exit(0);
}
