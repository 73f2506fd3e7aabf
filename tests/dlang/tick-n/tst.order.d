/* What is due first comes first. */
#pragma D option quiet
tick-3ms { printf("3\n"); }
tick-2ms { printf("2\n"); }
tick-7ms { exit(0); }
