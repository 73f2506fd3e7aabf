/* @options: -x defaultargs

   Arguments that are not given are 0 and "". */
#pragma D option quiet
BEGIN { printf("%d [%s] %d\n", $1, $$2, $3 == 0 ? 7 : $3); exit(0); }
