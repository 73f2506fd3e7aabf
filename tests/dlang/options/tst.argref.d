/* argref: arguments need not be used.
   @arguments: one two */
#pragma D option quiet
#pragma D option argref
BEGIN { printf("%s\n", $$1); exit(0); }
