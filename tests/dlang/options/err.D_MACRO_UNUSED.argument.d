/* Without argref they must.
   @arguments: one two */
BEGIN { printf("%s\n", $$1); exit(0); }
