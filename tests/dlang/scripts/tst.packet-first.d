/* The first bytes of the first packet: its type is 0x0800, big-endian. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::if_input:entry
/!done/
{
	done = 1;
	this->data = (uint8_t *)args[1]->m_data;
	printf("%s %04x\n", stringof(args[0]->if_name), (uint16_t)this->data[12] << 8 | this->data[13]);
	printf("%x\n", ntohs(*(uint16_t *)(this->data + 12)));
	exit(0);
}
