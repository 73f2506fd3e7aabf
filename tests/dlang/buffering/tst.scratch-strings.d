/* Strings that become pointers take the clause's memory, and make its end come nearer. */
#pragma D option quiet

#pragma D option scratchsize=64

BEGIN { p = (char *)alloca(64); printf("all\n"); }
BEGIN { p = (char *)alloca(57); s = strjoin("abc", "defg"); printf("%s\n", s); q = alloca(8); printf("never\n"); }
ERROR { printf("fault %d\n", arg4); }
BEGIN { exit(0); }
