/* What is no multiple of a word is no more than it says; what follows is aligned. */
#pragma D option quiet
#pragma D option scratchsize=9
BEGIN { p = (char *)alloca(9); p[8] = 'a'; printf("%c", p[8]); }
BEGIN { alloca(10); printf("never"); }
BEGIN { alloca(1); alloca(1); printf("%s", "b"); }
BEGIN { alloca(1); alloca(2); printf("never"); }
ERROR { printf("%d", arg4); }
BEGIN { printf("\n"); exit(0); }
