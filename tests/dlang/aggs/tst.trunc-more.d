/* More than there are is no error. */
#pragma D option quiet
BEGIN { @a["one"] = sum(1); @a["two"] = sum(2); exit(0); }
END { trunc(@a, 10); trunc(@a, -10); }
