/* Other separators each time; a part begins with what ended the one before, if that is none of them. */
#pragma D option quiet

BEGIN
{
	printf("[%s]", strtok("key=a:b c", "="));
	printf("[%s]", strtok(NULL, ":"));
	printf("[%s]\n", strtok(NULL, ""));
	exit(0);
}
