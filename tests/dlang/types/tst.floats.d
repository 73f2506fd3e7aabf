/* Floating-point types have sizes but no values to compute with. */
#pragma D option quiet

struct f {
	float a;
	double b;
};

BEGIN
{
	printf("%d %d\n", sizeof (struct f), offsetof(struct f, b));
	exit(0);
}
