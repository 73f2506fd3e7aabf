/* netsize.d - packets of each interface: number, bytes, least, average, most. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

BEGIN
{
	printf("%-6s %7s %7s %5s %5s %5s\n", "IF", "PACKETS", "BYTES", "MIN", "AVG", "MAX");
}

fbt::if_input:entry
{
	this->name = stringof(args[0]->if_name);
	@n[this->name] = count();
	@bytes[this->name] = sum(args[1]->m_len);
	@least[this->name] = min(args[1]->m_len);
	@average[this->name] = avg(args[1]->m_len);
	@most[this->name] = max(args[1]->m_len);
}

END
{
	printa("%-6s %@7d %@7d %@5d %@5d %@5d\n", @n, @bytes, @least, @average, @most);
}
