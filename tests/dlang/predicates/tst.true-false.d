/* What is not 0 is true. */
#pragma D option quiet
BEGIN /1/ { printf("1 "); }
BEGIN /0/ { printf("0 "); }
BEGIN /-1/ { printf("-1 "); }
BEGIN /'a'/ { printf("a "); }
BEGIN /(char *)8/ { printf("pointer "); }
BEGIN /NULL/ { printf("null "); }
BEGIN /(long)0x100000000/ { printf("long "); }
BEGIN { printf("\n"); exit(0); }
