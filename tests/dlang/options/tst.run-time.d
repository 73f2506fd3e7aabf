/* Options of a run, said by the program. */
#pragma D option quiet
#pragma D option bufpolicy=switch
#pragma D option bufresize=auto
#pragma D option cpu=0
#pragma D option destructive
#pragma D option grabanon
#pragma D option jstackframes=10
#pragma D option jstackstrsize=100
#pragma D option nspec=4
#pragma D option stackframes=5
#pragma D option ustackframes=5
#pragma D option temporal
BEGIN { printf("%d\n", speculation() + speculation() + speculation() + speculation()); exit(0); }
