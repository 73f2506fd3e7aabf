/* strsize is what a string takes.
   @options: -x strsize=40 */
#pragma D option quiet
BEGIN { s = "x"; printf("%d %d\n", sizeof (s), sizeof (probename)); exit(0); }
