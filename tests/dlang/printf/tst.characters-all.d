/* %c of numbers, %% alone. */
#pragma D option quiet

BEGIN { printf("%c%c%c%%\n", 65, 'b', 0x43); exit(0); }
