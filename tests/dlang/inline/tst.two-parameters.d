/* Parameters are evaluated once, as their types. */
#pragma D option quiet

inline int larger[int a, int b] = a > b ? a : b;

BEGIN { i = 3; printf("%d %d ", larger[i++, 2], i); printf("%d\n", larger[larger[1, 7], 5]); exit(0); }
