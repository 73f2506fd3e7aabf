/* An aggregation without values is not printed. */
#pragma D option quiet
BEGIN { @used = count(); exit(0); }
BEGIN /0/ { @unused = count(); }
