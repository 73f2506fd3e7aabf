/* Arguments of every function taken for addresses: a value or a fault. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt:::entry
{
	x = ((char *)arg1)[arg2 & 0xff];
	good++;
}

ERROR
{
	bad = arg4 != DTRACEFLT_BADADDR;
}

END
{
	printf("%s, %d other faults\n", good > 0 ? "values" : "none", bad);
}
