BEGIN { printf("given with -n\n"); exit(0); } /* @options: -q
@input: -n */
