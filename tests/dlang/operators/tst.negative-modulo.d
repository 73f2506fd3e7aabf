/* Division goes toward zero; the remainder has the dividend's sign. */
#pragma D option quiet

BEGIN { a = -7; b = 2; printf("%d %d %d %d\n", a / b, a % b, 7 / -b, 7 % -b); exit(0); }
