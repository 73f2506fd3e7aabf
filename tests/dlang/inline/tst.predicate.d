/* In predicates and keys. */
#pragma D option quiet

inline int wanted = 3;
inline int is_wanted[int n] = n == wanted;

BEGIN
{
	n = 3;
	a[wanted] = 33;
}

BEGIN
/is_wanted[n]/
{
	printf("%d\n", a[n]);
	exit(0);
}
