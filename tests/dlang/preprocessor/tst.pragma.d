/* @options: -C -DSIZE=8

   A pragma goes through the preprocessor, but macros are not replaced in it. */
#pragma D option quiet

#pragma D option strsize=5
BEGIN { x = "abcdefgh"; printf("%s %d\n", x, SIZE); exit(0); }
