/* A predicate is any scalar. */
#pragma D option quiet

BEGIN /"a" == "a"/ { printf("text "); }
BEGIN /0x100000000/ { printf("large "); }
BEGIN /NULL/ { printf("never "); }
BEGIN /!0 && 3/ { printf("logic\n"); exit(0); }
