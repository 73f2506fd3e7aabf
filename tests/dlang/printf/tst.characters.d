/* %c is one character of whatever size the argument has. */
#pragma D option quiet

BEGIN
{
	printf("%c%c%c%c", 'D', (char)84, (short)'r', 97);
	printf("%c%c\n", 'c', 'e' + 256);
	exit(0);
}
