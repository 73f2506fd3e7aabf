/* What was written so far is gone, where the output can be cut. */
#pragma D option quiet
BEGIN { printf("gone\n"); ftruncate(); printf("kept\n"); exit(0); }
