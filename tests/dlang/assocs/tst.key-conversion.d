/* A key is converted to the type of its place: 257 as a char is 1. */
#pragma D option quiet

int a[char];
int b[int64_t];

BEGIN
{
	a[1] = 5;
	b[-1] = 6;
	printf("%d %d\n", a[1], b[-1]);
	exit(0);
}
