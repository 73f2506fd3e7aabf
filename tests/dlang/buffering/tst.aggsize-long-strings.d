/* A string takes strsize of aggsize: one key of long ones is all that fits. */
#pragma D option quiet
#pragma D option aggsize=1k
#pragma D option strsize=512
BEGIN { @["a"] = count(); @["b"] = count(); @["c"] = count(); @["d"] = count(); exit(0); }
