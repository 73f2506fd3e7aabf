/* Programs of the command line, in their order. @options: -q -n 'BEGIN{n=1}' -n 'BEGIN{n=n*10+2}' */
BEGIN { printf("%d\n", n * 10 + 3); exit(0); }
