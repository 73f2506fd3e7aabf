/* A positive number: so many of the largest stay. */
#pragma D option quiet
BEGIN { @a["one"] = sum(1); @a["two"] = sum(2); @a["three"] = sum(3); @a["four"] = sum(4); exit(0); }
END { trunc(@a, 2); }
