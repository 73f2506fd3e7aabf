/* @options: -32
   @status: 2

   No machine has 32. */
BEGIN { exit(0); }
