/* -n: its name.
   @input: -n
*/
BEGIN { trace("begin"); exit(0); }
