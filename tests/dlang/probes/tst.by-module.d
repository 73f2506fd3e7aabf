/* -m: provider and module.
   @input: -m
*/
dtrace: /probename == "BEGIN"/ { trace(1); exit(0); }
