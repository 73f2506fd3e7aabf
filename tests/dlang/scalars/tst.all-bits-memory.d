/* Members of structs and elements of C arrays are memory: they have the size of their type, and are cut to it. */
#pragma D option quiet

struct s {
	int i;
	unsigned char c;
	int b : 3;
} v;
int a[2];

BEGIN
{
	v.i = ((int64_t)1 << 40) + 1; v.c = i = 511; v.b = 13; a[1] = ((int64_t)3 << 32) + 9;
	printf("%d %d %d %d\n", v.i == 1, v.c == 255, v.b == -3, a[1] == 9);
	v.c++; printf("%d %d\n", v.c, v.c == 0);
	p = (int *)alloca(8); *p = (int64_t)5 << 32; printf("%d\n", *p == 0);
	exit(0);
}
