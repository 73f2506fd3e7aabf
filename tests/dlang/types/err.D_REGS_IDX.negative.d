/* There is no register before the first. */
fbt::kmain:entry
{
	trace(uregs[-1]);
}
/* @image: kernel */
