/* aggsortkeypos may change; a place that there is not is the first. */
#pragma D option quiet
#pragma D option aggsortkeypos=1
#pragma D option aggsortkey
BEGIN { @[1, "c"] = sum(1); @[2, "b"] = sum(2); @[3, "a"] = sum(3); printa("%d%s ", @); setopt("aggsortkeypos", "0"); printa("%d%s ", @); setopt("aggsortkeypos", "5"); printa("%d%s ", @); printf("\n"); exit(0); }
