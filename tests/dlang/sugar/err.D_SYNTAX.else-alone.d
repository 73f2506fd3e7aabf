/* else follows an if. */
BEGIN
{
	else {
		trace(1);
	}
}
