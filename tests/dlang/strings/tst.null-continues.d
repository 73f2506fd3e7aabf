/* strtok() goes on with any NULL, whatever it comes from, and not with the empty string. */
#pragma D option quiet

self string unset;

BEGIN
{
	printf("%s ", strtok("a,b,c,d", ","));
	printf("%s ", strtok(NULL, ","));
	printf("%s ", strtok(self->unset, ","));
	printf("%d ", strtok("", ",") == NULL);
	printf("%d\n", strtok(NULL, ",") == NULL);
	exit(0);
}
