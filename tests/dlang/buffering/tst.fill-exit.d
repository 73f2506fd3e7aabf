/* @options: -x bufpolicy=fill -x bufsize=4k

   All is printed at the end, in order. */
#pragma D option quiet

BEGIN { printf("begin\n"); }
tick-1ms { printf("%d\n", n++); }
tick-1ms /n == 3/ { exit(0); }
END { printf("end\n"); }
