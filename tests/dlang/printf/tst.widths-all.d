/* Widths and precisions from both sides. */
#pragma D option quiet

BEGIN { printf("[%5d][%-5d][%05d][%+d][% d][%.3d]\n", 42, 42, 42, 42, 42, 7); printf("[%8s][%-8s][%.2s][%8.2s]\n", "abc", "abc", "abc", "abc"); exit(0); }
