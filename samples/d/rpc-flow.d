#!/usr/bin/env -S kinst-run -s
/*
 * rpc-flow.d - the function flow of one request, with the time since it began.
 *
 * flowindent indents at each entry, -> func, and outdents at each return, <- func; beside them stand the first argument
 * and the value returned. A function that ends in a tail call returns when the one that it jumps to has, with the same
 * value at the same time. An interrupt that comes in the middle shows in the flow: it is what the CPU did.
 *
 * USAGE: kinst-run -s samples/d/rpc-flow.d IMAGE [PROCEDURE] --console /dev/null
 *
 *	PROCEDURE	0 null, 1 getattr, 2 lookup, 3 read, 4 write (default: 3)
 */

#pragma D option flowindent
#pragma D option defaultargs

BEGIN
{
	wanted = $1 ? $1 : 3;
}

fbt::rpc_dispatch:entry
/((struct rpc_request *)arg0)->procedure == wanted/
{
	self->start = timestamp;
}

fbt:::entry
/self->start/
{
	printf("%6d ns  0x%x", timestamp - self->start, arg0);
}

fbt:::return
/self->start && probefunc != "rpc_release"/
{
	printf("%6d ns  = 0x%x", timestamp - self->start, arg1);
}

fbt::rpc_release:return
/self->start/
{
	printf("%6d ns", timestamp - self->start);
	exit(0);
}
