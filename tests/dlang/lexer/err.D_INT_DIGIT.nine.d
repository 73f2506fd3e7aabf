/* Digits go on in a number that begins with 0. */
BEGIN
{
	trace(0129);
}
