/* Totals as rates: normalized by the time that passed, and back. */
#pragma D option quiet

BEGIN
{
	start = timestamp;
}

tick-100ms
{
	@bytes["disk"] = sum(4096);
	@bytes["net"] = sum(1500);
	@bytes["total"] = sum(5596);
}

tick-2s
{
	normalize(@bytes, (timestamp - start) / 1000000000);
	printa("%-8s %@8d B/s\n", @bytes);
	denormalize(@bytes);
	printa("%-8s %@8d B\n", @bytes);
	exit(0);
}

END
{
	trunc(@bytes);
}
