/* Without -q the same. */
BEGIN { @a["k"] = count(); exit(0); }
