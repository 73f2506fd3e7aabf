/* By value, then by keys. */
#pragma D option quiet

BEGIN
{
	@a["three"] = sum(3);
	@a["one"] = sum(1);
	@a["two"] = sum(2);
	@a["also one"] = sum(1);
	exit(0);
}
