/* Actions, too. */
#pragma D option version=1.8.1

BEGIN
{
	print(1);
}
