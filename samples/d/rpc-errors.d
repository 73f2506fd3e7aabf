#!/usr/bin/env -S kinst-run -s
/*
 * rpc-errors.d - what a request did, of those requests only that fail with the given error.
 *
 * Whether a request fails is known at its end; what led there happened before. So each request is recorded into a
 * speculation, which is committed if the request returns the error, and discarded if not: of 336 calls this prints
 * one kind. The second argument ends the run after so many.
 *
 * USAGE: kinst-run -s samples/d/rpc-errors.d IMAGE [ERROR [COUNT]] --console /dev/null
 *
 *	ERROR	BSD's number: 2 no such file, 12 no memory, 20 not a directory, 22 invalid, 27 too big (default: 12)
 *	COUNT	requests to print (default: 1)
 */

#pragma D option quiet
#pragma D option defaultargs

/* An interrupt in the middle of a request may run many functions. */
#pragma D option specsize=1m

BEGIN
{
	wanted = $1 ? $1 : 12;
	left = $2 ? $2 : 1;
}

fbt::rpc_call:entry
{
	self->spec = speculation();
	self->request = (struct rpc_request *)arg1;
}

fbt::rpc_call:entry
/self->spec/
{
	speculate(self->spec);
	printf("xid %d, version %d, %s, file %d, offset %d, count %d\n", self->request->xid, self->request->version,
	    stringof(((struct rpc_operation *)arg0)->name), self->request->handle, self->request->offset,
	    self->request->count);
}

fbt:::entry
/self->spec && probefunc != "rpc_call"/
{
	speculate(self->spec);
	printf("  -> %s(0x%x)\n", probefunc, arg0);
}

fbt:::return
/self->spec && probefunc != "rpc_call"/
{
	speculate(self->spec);
	printf("  <- %s = 0x%x\n", probefunc, arg1);
}

fbt::rpc_call:return
/self->spec && args[1] != wanted/
{
	discard(self->spec);
	self->spec = 0;
}

fbt::rpc_call:return
/self->spec/
{
	speculate(self->spec);
	printf("failed with %d\n\n", args[1]);
}

fbt::rpc_call:return
/self->spec/
{
	commit(self->spec);
	self->spec = 0;
	left--;
}

fbt::rpc_call:return
/left == 0/
{
	exit(0);
}
