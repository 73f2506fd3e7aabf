/* What failed for want of memory, by speculation: the calls that did not fail are discarded. */
/* @options: --console /dev/null -x cleanrate=1000hz */
/* @image: kernel */
#pragma D option quiet

#pragma D option nspec=4

fbt::rpc_call:entry
{
	self->spec = speculation();
}

fbt::rpc_call:entry
/self->spec/
{
	speculate(self->spec);
	printf("xid %4d wants %d bytes: ", args[1]->xid, args[1]->count);
}

fbt::rpc_call:return
/self->spec && args[1] == 12/
{
	speculate(self->spec);
	printf("no memory\n");
}

fbt::rpc_call:return
/self->spec && args[1] == 12/
{
	commit(self->spec);
	self->spec = 0;
}

fbt::rpc_call:return
/self->spec/
{
	discard(self->spec);
	self->spec = 0;
}
