/* Names of a probe. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::kmain:entry
{
	printf("%s %s %s %d\n", probeprov, probefunc, probename, strlen(probemod) > 0);
	exit(0);
}
