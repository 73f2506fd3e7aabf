/* Inlines of every kind. */
#pragma D option quiet

inline int i0 = 100 + 23;
inline string i1 = probename;
inline pid_t i2 = pid;
inline int i3[int x] = x + 1;
inline int i4 = i3[i0];
inline int i5[string s, int n] = strlen(s) + n;

BEGIN
{
	printf("%d %s %d %d %d\n", i0, i1, i2 == pid, i4, i5["four", 5]);
	exit(0);
}
