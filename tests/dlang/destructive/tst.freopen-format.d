/* With a name that is computed. */
#pragma D option quiet
#pragma D option destructive
BEGIN { freopen("/dev/%s", "null"); printf("lost\n"); freopen(""); printf("kept\n"); exit(0); }
