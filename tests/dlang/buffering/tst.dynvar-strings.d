/* @options: -x dynvarsize=2k -x strsize=512

   A string takes strsize of it: few find room. */
#pragma D option quiet

BEGIN { s["a"] = "one"; s["b"] = "two"; s["c"] = "three"; printf("[%s] %d %d\n", s["a"], s["b"] == NULL, s["c"] == NULL); exit(0); }
