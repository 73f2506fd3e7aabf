#!/usr/bin/env -S kinst-run -s
/*
 * packets.d - packets, bytes and sizes by network interface.
 *
 * Every packet passes if_input(struct ifnet *ifp, struct mbuf *m). The types come from the image's debug information,
 * so args[0] and args[1] are used as in the kernel's own source.
 *
 * USAGE: kinst-run -s samples/d/packets.d IMAGE --console /dev/null
 *
 * FIELDS:
 *	IF		interface
 *	PACKETS, BYTES	received
 *	AVG, MAX	bytes of a packet
 */

#pragma D option quiet

fbt::if_input:entry
{
	this->name = stringof(args[0]->if_name);
	this->size = args[1]->m_len;
	@packets[this->name] = count();
	@bytes[this->name] = sum(this->size);
	@average[this->name] = avg(this->size);
	@largest[this->name] = max(this->size);
	@sizes[this->name] = lquantize(this->size, 0, 500, 100);
}

END
{
	printf("%-6s %9s %9s %9s %9s\n", "IF", "PACKETS", "BYTES", "AVG", "MAX");
	printa("%-6s %@9d %@9d %@9d %@9d\n", @packets, @bytes, @average, @largest);
	printa("\n%s: bytes of a packet%@d", @sizes);
}
