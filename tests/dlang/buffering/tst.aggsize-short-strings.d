/* A string takes strsize of aggsize: short ones leave room for more keys. */
#pragma D option quiet
#pragma D option aggsize=1k
#pragma D option strsize=16
BEGIN { @["a"] = count(); @["b"] = count(); @["c"] = count(); @["d"] = count(); exit(0); }
