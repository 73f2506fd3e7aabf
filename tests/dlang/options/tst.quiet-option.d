/* quiet, said on the command line.
   @options: -x quiet */
BEGIN { trace("x"); exit(0); }
