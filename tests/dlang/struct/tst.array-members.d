/* Arrays in structs, by constant and computed indexes. */
#pragma D option quiet

struct s { int n; int a[4]; } v;

BEGIN { v.a[0] = 5; i = 3; v.a[i] = 7; v.a[i - 1]++; printf("%d %d %d %d\n", v.a[0], v.a[1], v.a[2], v.a[3]); exit(0); }
