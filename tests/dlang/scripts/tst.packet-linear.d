/* The same in steps of 50, for each interface that is none of its own. */
/* @options: --console /dev/null */
/* @image: kernel */
#pragma D option quiet

fbt::if_input:entry
/stringof(args[0]->if_name) != "lo0"/
{
	@sizes = lquantize(args[1]->m_len, 100, 400, 50);
}

END
{
	printa(@sizes);
}
