/* When there is no more, the clause ends with a fault, and the next has all of it again. */
#pragma D option quiet

#pragma D option scratchsize=1k

BEGIN { a = alloca(512); b = alloca(512); printf("all\n"); }
BEGIN { a = alloca(512); b = alloca(513); printf("never\n"); }
BEGIN { a = alloca(1024); printf("again\n"); }
ERROR { printf("fault %d\n", arg4); }
BEGIN { exit(0); }
