/* %S and %C show what cannot be printed as C would write it. */
#pragma D option quiet

BEGIN
{
	printf("[%S]\n", "tab\there\n");
	printf("[%S]\n", "bell\a \001");
	printf("[%C%C%C]\n", 'a', '\n', '\0');
	exit(0);
}
