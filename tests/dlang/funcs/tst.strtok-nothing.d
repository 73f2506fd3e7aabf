/* Only separators, or nothing. */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", strtok(";;;", ";") == NULL, strtok("", ";") == NULL);
	exit(0);
}
