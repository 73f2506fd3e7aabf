/* A string takes strsize of aggsize, the default too. */
#pragma D option quiet
#pragma D option aggsize=1k
BEGIN { @["a"] = count(); @["b"] = count(); @["c"] = count(); @["d"] = count(); exit(0); }
