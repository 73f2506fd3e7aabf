/*
 * Symbols of the kernel are variables that are read where they are: scalars, arrays of structs, enumeration constants.
 * @image: kernel
 * @options: --console /dev/null
 */
#pragma D option quiet

fbt::clock_report:entry
{
	printf("%d %d %x\n", `calls, `surprises, `results);
	printf("%d %d\n", `executed, `stopped);
	printf("%s %d %d %d\n", stringof(`interfaces[0].if_name), `interfaces[0].if_ipackets, `interfaces[0].if_ibytes,
	    `interfaces[0].if_iqdrops);
	printf("%s %d %d %d\n", stringof(`interfaces[2].if_name), `interfaces[2].if_ipackets, `interfaces[2].if_ibytes,
	    `interfaces[2].if_iqdrops);
	printf("arp %d, tcp %d, udp %d, loop %d\n", `protocol_packets[PROTO_ARP], `protocol_packets[PROTO_TCP],
	    `protocol_packets[PROTO_UDP], `protocol_packets[PROTO_LOOP]);
	printf("%s %d/%d\n", stringof(`operations[1][RPC_LOOKUP].name), `operations[1][RPC_LOOKUP].calls,
	    `operations[1][2].errors);
	printf("%d %d %d\n", sizeof (`calls), sizeof (`protocol_packets), sizeof (`interfaces));
	printf("%d %d\n", RPC_V3, RPC_PROCEDURES);
	exit(0);
}
