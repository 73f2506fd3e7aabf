/* An integer stands for the probe of that id: 1 is BEGIN. */
#pragma D option quiet

1
{
	printf("%s\n", probename);
	exit(0);
}
