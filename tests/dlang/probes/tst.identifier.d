/* A number is a probe's identifier. */
#pragma D option quiet
1 { printf("%s\n", probename); exit(0); }
2 { printf("%s\n", probename); }
