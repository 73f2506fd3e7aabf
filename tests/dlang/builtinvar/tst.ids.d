/* epid counts enablings, id is the probe's. */
#pragma D option quiet
BEGIN { printf("%d %d\n", epid, id); }
BEGIN { printf("%d %d\n", epid, id); exit(0); }
END { printf("%d %d\n", epid, id); }
