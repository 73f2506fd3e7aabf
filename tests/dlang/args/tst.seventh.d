/*
 * More parameters than registers for them: the seventh.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::vattr_set:entry
{
	printf("%d %o %d %d %d %d\n", args[1], args[2], args[3], args[4], args[5], args[6]);
	n++;
}

fbt::vattr_set:entry
/n == 4/
{
	exit(0);
}
