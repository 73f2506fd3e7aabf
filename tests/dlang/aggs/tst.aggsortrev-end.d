/* The last one defined comes first, with its largest value. */
#pragma D option quiet
#pragma D option aggsortrev

BEGIN
{
	@a["x"] = sum(1);
	@a["y"] = sum(2);
	@b = sum(0);
	@c["x"] = sum(9);
	exit(0);
}
