/* All probes of a provider. */
#pragma D option quiet
dtrace::: { printf("%s\n", probename); }
BEGIN { exit(0); }
