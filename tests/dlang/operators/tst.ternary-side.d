/* Only the chosen side is evaluated. */
#pragma D option quiet

BEGIN { x = 1; y = x ? 5 : 1 / (x - 1); printf("%d\n", y); z = 0; w = x ? z : z++; printf("%d %d\n", w, z); exit(0); }
