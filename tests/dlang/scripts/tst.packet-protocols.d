/* Protocols by name: a table that BEGIN fills, indexed by an enumeration of the kernel. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

BEGIN
{
	name[PROTO_ARP] = "arp";
	name[PROTO_TCP] = "tcp";
	name[PROTO_UDP] = "udp";
	name[PROTO_LOOP] = "loop";
}

fbt::proto_input:entry
{
	@[name[(int)args[0]]] = count();
}

END
{
	printa("%-5s %@3d\n", @);
}
