/* A clause may do nothing, and still run. */
#pragma D option quiet

BEGIN { }
BEGIN { ; ; printf("here\n"); ; exit(0) }
