/* Of several on the command line the last one counts.
   @options: -x quiet -q -x quiet=no -b 8k -b 64 -x bufsize=4k */
BEGIN { trace(1); exit(0); }
