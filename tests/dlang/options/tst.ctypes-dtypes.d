/* Where libdtrace would leave its types.
   @options: -x ctypes=/dev/null -x dtypes=/dev/null -x cpphdrs -x encoding=ascii */
#pragma D option quiet
BEGIN { printf("fine\n"); exit(0); }
