/* An inline stands for its expression. */
#pragma D option quiet

inline int LIMIT = 10;
inline string NAME = "inline";
inline int64_t BIG = 1 << 4 | 0x100000000;

BEGIN
{
	printf("%d %s %d\n", LIMIT, NAME, BIG);
	printf("%d %d\n", LIMIT * 2, LIMIT == 10 ? 1 : 0);
	exit(0);
}
