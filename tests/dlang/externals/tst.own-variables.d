/*
 * The program's names and the kernel's are apart: calls is D's, `calls the kernel's.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

BEGIN
{
	calls = 5;
	node_count = "D's";
}

fbt::work_init:entry
{
	printf("%d %d\n", calls, `calls);
	printf("%s %d\n", node_count, `node_count);
	exit(0);
}
