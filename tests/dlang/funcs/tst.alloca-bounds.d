/* Only what was allocated can be read and written. */
#pragma D option quiet

BEGIN { p = (char *)alloca(8); p[7] = 'x'; printf("%c\n", p[7]); p[8] = 'y'; }
BEGIN { p = (char *)alloca(8); trace(p[-1]); }
ERROR { printf("fault %d\n", arg4); }
BEGIN { exit(0); }
