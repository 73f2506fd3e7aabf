/* Something follows the condition. */
BEGIN
{
	if (1)
}
