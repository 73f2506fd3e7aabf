/* What the kernel prints, before it is formatted. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

#pragma D option strsize=32

fbt::printk:entry
{
	@[copyinstr(arg0)] = count();
	lines++;
}

END
{
	trunc(@, 2);
	printa("%@d %S\n", @);
	printf("%d\n", lines);
}
