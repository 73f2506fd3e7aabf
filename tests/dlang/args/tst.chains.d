/*
 * Members of members, behind pointers and in arrays.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::rpc_call:entry
/stringof(args[0]->name) == "lookup" && args[1]->procedure == RPC_LOOKUP/
{
	self->request = args[1];
}

fbt::rpc_call:return
/self->request/
{
	this->attr = &self->request->reply.attr;
	printf("%d v%d %s: %d, handle %d, size %d, mode %o\n", self->request->xid, self->request->version,
	    stringof(self->request->name), args[1], self->request->reply.handle, this->attr->va_size,
	    self->request->reply.attr.va_mode);
	self->request = 0;
	n++;
}

fbt::rpc_call:return
/n == 2/
{
	printf("%d %d %d\n", sizeof (struct rpc_request), sizeof (*self->request), offsetof(struct rpc_request, reply));
	exit(0);
}
