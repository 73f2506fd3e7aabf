/* But not in another firing: there is no text. */
#pragma D option quiet

BEGIN
{
	printf("%s\n", strtok("one two three", " "));
}

tick-1s
{
	printf("%d\n", strtok(NULL, " ") == NULL);
	exit(0);
}
