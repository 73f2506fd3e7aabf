/* agghist: keys as bars. */
#pragma D option quiet
#pragma D option agghist
BEGIN { @a["x"] = sum(1); @a["y"] = sum(3); exit(0); }
