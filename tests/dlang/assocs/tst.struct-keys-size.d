/* A key of a struct takes its bytes of dynvarsize.
   @options: -x dynvarsize=64k */
#pragma D option quiet

struct large {
	int number;
	char rest[7996];
};

struct large v;
int kept;

BEGIN { v.number = 1; seen[v] = 1; v.number = 2; seen[v] = 1; v.number = 3; seen[v] = 1; v.number = 4; seen[v] = 1; }
BEGIN { v.number = 5; seen[v] = 1; v.number = 6; seen[v] = 1; v.number = 7; seen[v] = 1; v.number = 8; seen[v] = 1; }
BEGIN { v.number = 9; seen[v] = 1; v.number = 10; seen[v] = 1; }
BEGIN { v.number = 1; kept += seen[v]; v.number = 8; kept += seen[v]; v.number = 10; kept += seen[v]; }
BEGIN { printf("%d\n", kept); exit(0); }
