/* And a wrong value.
   @options: -x strsize=big
   @status: 1 */
BEGIN { exit(0); }
