/* An array that is no text is no key. */
int numbers[3];

BEGIN
{
	seen[numbers] = 1;
}
