/* Summaries while the kernel runs: packets of every 5 ms, cleared, and all of them at the end. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::if_input:entry
{
	@now = count();
	total++;
}

tick-5ms
{
	printa("%@d\n", @now);
	clear(@now);
	summaries++;
}

END
{
	trunc(@now);
	printf("%d packets, %s summaries\n", total, summaries > 2 ? "some" : "few");
}
