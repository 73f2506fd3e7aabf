/* opensnoop.d - paths as they come, of one client: file names of 12 columns, errors at the return. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

BEGIN
{
	printf("%5s %-20s %s\n", "XID", "PATH", "ERR");
}

fbt::rpc_call:entry
{
	self->xid = args[1]->xid + 1;
}

fbt::vfs_lookup:entry
/self->xid > 300 && self->xid <= 400/
{
	self->path = stringof(args[0]);
}

fbt::rpc_call:return
/self->path != ""/
{
	printf("%5d %-20s %3d\n", self->xid - 1, self->path, args[1]);
	self->path = 0;
}
