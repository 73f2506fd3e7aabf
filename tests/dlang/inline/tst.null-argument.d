/* NULL for a pointer, 0 for a number: parameters are variables, whatever is passed. */
#pragma D option quiet

inline string shown[int *p] = p == NULL ? "none" : "some";
inline int64_t ratio[int a, int b] = b == 0 ? -1 : a / b;
inline uint64_t wide[int x] = (uint64_t)x;

BEGIN
{
	printf("%s %s\n", shown[0], shown[(int *)8]);
	printf("%d %d\n", ratio[6, 3], ratio[6, 0]);
	printf("%x %d\n", wide[-1], wide[5]);
	exit(0);
}
