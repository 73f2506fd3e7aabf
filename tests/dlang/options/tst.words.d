/* A boolean word is one in any case; a denial is as if the option had not been given. */
#pragma D option quiet=YES
#pragma D option aggsortrev=Enabled
#pragma D option aggsortkey=TRUE
#pragma D option aggsortkey=Unset
#pragma D option nspec=7
#pragma D option nspec=No
#pragma D option stackindent=3
#pragma D option stackindent=DISABLE
BEGIN { @["a"] = sum(2); @["b"] = sum(1); @["c"] = sum(3); }
BEGIN { printf("%d %d ", speculation(), speculation()); printa("%s", @); setopt("aggsortrev", "oFF"); printa("%s", @); exit(0); }
