/* None at all: strings are made all the same.
   @options: -x scratchsize=0 */
#pragma D option quiet
BEGIN { alloca(1); printf("never"); }
BEGIN { printf("%s", substr("text", 1)); }
BEGIN { printf("%s", strjoin("a", "b")); }
ERROR { printf("%d", arg4); }
BEGIN { printf("\n"); exit(0); }
