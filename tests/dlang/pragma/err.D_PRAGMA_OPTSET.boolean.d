/* A word that is neither yes nor no. */
#pragma D option quiet=perhaps

BEGIN
{
	exit(0);
}
