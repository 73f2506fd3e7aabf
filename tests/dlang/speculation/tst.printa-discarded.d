/* What is not committed does not act. */
#pragma D option quiet
BEGIN { s = speculation(); @a = count(); }
BEGIN { speculate(s); printa("%@d ", @a); clear(@a); }
BEGIN { discard(s); }
BEGIN { printa("%@d\n", @a); exit(0); }
