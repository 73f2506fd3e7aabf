/* @options: -x bufpolicy=whatever
   @status: 1

   There are three policies. */
BEGIN { exit(0); }
