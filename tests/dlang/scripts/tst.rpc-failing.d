/* A request is remembered at its entry and printed when it fails: the first of each error. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::rpc_call:entry
{
	self->request = args[1];
	self->operation = args[0];
}

fbt::rpc_call:return
/self->request && args[1] && !seen[args[1]]/
{
	seen[args[1]] = 1;
	printf("xid %2d: v%d %s: error %d\n", self->request->xid, self->request->version,
	    stringof(self->operation->name), (int)args[1]);
}

fbt::rpc_call:return
{
	self->request = 0;
	self->operation = 0;
}
