/* mallocstat.d - what is asked for, what fails. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::kmalloc:entry
{
	self->size = args[0];
	@calls = count();
}

fbt::kmalloc:return
/args[1] == NULL/
{
	@failed[self->size] = count();
}

fbt::kmalloc:return
{
	self->size = 0;
}

fbt::kfree:entry
{
	@frees[arg0 ? "memory" : "nothing"] = count();
}

END
{
	printa("%@d calls\n", @calls);
	printa("%d bytes: failed %@d times\n", @failed);
	printa("freed %s %@d times\n", @frees);
}
