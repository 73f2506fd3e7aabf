/* %i is signed whatever the type, in as many bits as that has; %d is as the type. */
#pragma D option quiet

BEGIN
{
	printf("%i %d\n", (uint8_t)200, (uint8_t)200);
	printf("%i %d\n", (uint16_t)-1, (uint16_t)-1);
	printf("%i %d\n", (uint32_t)-1, (uint32_t)-1);
	printf("%i %d\n", (uint64_t)-2, (uint64_t)-2);
	printf("%i %d %4i|\n", -5, -5, (uint8_t)255);
	@ = sum(7);
	exit(0);
}

END
{
	printa("%@i\n", @);
}
