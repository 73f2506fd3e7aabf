/* freopen() leads the output to a file, freopen("") back. */
#pragma D option quiet
#pragma D option destructive
BEGIN { printf("one\n"); freopen("/dev/null"); printf("two\n"); freopen(""); printf("three\n"); exit(0); }
