/* Drops are no errors of clauses, nor is an option that cannot be set.
   @options: -x noerror */
#pragma D option quiet
#pragma D option nspec=0
BEGIN { speculate(1); }
BEGIN { x = speculation(); setopt("bufsize", "1k"); exit(0); }
