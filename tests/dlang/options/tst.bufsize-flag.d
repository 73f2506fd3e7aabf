/* -b is bufsize.
   @options: -b 32 -q */
BEGIN { trace(execname); }
BEGIN { printf("on\n"); exit(0); }
