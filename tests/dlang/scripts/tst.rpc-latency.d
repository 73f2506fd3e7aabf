/* rpclatency.d - every call has an entry and a return, and takes time. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::rpc_call:entry
{
	self->start = timestamp;
}

fbt::rpc_call:return
/self->start/
{
	this->elapsed = timestamp - self->start;
	@n["calls"] = count();
	@n[this->elapsed > 0 ? "with time" : "without"] = count();
	@total = sum(this->elapsed);
	@least = min(this->elapsed);
	@most = max(this->elapsed);
	self->start = 0;
}

END
{
	printa("%s %@d\n", @n);
	trunc(@total);
	trunc(@least);
	trunc(@most);
}
