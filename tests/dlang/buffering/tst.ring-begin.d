/* @options: -x bufpolicy=ring -x bufsize=1k

   What BEGIN recorded is overwritten as well; nothing is printed before the end. */
#pragma D option quiet

BEGIN { printf("begin\n"); }
tick-1ms { printf("%s\n", "................................................................"); n++; }
tick-1ms /n == 200/ { exit(0); }
END { printf("end %d\n", n); }
