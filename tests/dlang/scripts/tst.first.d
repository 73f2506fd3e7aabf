/* Only the first firing of each function: a global array as a set. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::rpc_*:entry
/!seen[probefunc]++/
{
	printf("%s\n", probefunc);
}
