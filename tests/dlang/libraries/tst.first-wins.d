/*
 * Of two files of one name the first folder's counts; -x libdir is the same as -L.
 * @options: -L HERE/other.lib -x libdir=HERE/chain.lib
 */
#pragma D option quiet

BEGIN
{
	printf("%d %d\n", MIDDLE, MORE);
	exit(0);
}
