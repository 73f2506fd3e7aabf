/* Sizes of packets as a distribution. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::if_input:entry
{
	@["bytes"] = quantize(args[1]->m_len);
}

END
{
	printa("%s%@d\n", @);
}
