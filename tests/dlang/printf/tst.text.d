/* Text without conversions; percent signs. */
#pragma D option quiet
BEGIN { printf("100%% of it\n"); printf("%%d\t%%\n"); exit(0); }
