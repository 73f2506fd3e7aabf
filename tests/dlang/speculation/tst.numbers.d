/* Numbers begin with 1; there are nspec of them, then there is 0. */
#pragma D option quiet
#pragma D option nspec=2
BEGIN { printf("%d ", speculation()); printf("%d ", speculation()); printf("%d\n", speculation()); exit(0); }
