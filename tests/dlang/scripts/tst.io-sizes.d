/* bitesize.d - sizes of transfers by process, as distributions; a timer makes the events. */
#pragma D option quiet

int seed;

BEGIN
{
	seed = 1;
	name[0] = "cron";
	name[1] = "sshd";
	name[2] = "zsh";
	printf("Tracing... Hit Ctrl-C to end.\n");
}

tick-1ms
{
	seed = (seed * 1103515245 + 12345) & 0x7fffffff;
	@size[seed % 7, name[(seed >> 4) % 3]] = quantize((seed >> 8) % 9000);
	n++;
}

tick-1ms
/n == 40/
{
	exit(0);
}

END
{
	printf("\n%8s  %s\n", "PID", "CMD");
	printa("%8d  %s\n%@d\n", @size);
}
