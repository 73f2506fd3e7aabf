/* aggsortkeypos: which key counts first. */
#pragma D option quiet
#pragma D option aggsortkey
#pragma D option aggsortkeypos=1

BEGIN
{
	@a["b", 2] = sum(1);
	@a["a", 9] = sum(2);
	@a["b", 1] = sum(3);
	@a["a", 2] = sum(3);
	exit(0);
}
END { printa("%s%d ", @a); printf("\n"); }
