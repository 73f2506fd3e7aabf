/* A key longer than its columns. */
#pragma D option quiet
BEGIN { @a["a key of more than fifty characters, which moves the number"] = count(); exit(0); }
