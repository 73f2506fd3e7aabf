/* What the option says at the end. */
#pragma D option quiet
#pragma D option aggsortrev

BEGIN
{
	@a = sum(1);
	@b = sum(2);
	setopt("aggsortrev", "no");
	exit(0);
}
