/* A predicate that fails: ERROR, and the next clause runs. */
#pragma D option quiet
BEGIN { z = 0; }
BEGIN /1 / z == 1/ { printf("never\n"); }
BEGIN /strlen((char *)1) == 1/ { printf("never\n"); }
ERROR { printf("%d %d\n", arg2, arg4); }
BEGIN { printf("end\n"); exit(0); }
