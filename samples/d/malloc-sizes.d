#!/usr/bin/env -S kinst-run -s
/*
 * malloc-sizes.d - sizes asked of kmalloc(), those that were granted and those that were not.
 *
 * llquantize() is logarithmic with linear steps inside each order of magnitude: here from 10 to a million, with ten
 * steps each.
 *
 * USAGE: kinst-run -s samples/d/malloc-sizes.d IMAGE --console /dev/null
 */

#pragma D option quiet

fbt::kmalloc:entry
{
	self->size = arg0;
	self->is_in = 1;
}

fbt::kmalloc:return
/self->is_in/
{
	@[arg1 != 0 ? "granted" : "refused"] = llquantize(self->size, 10, 1, 6, 10);
	self->size = 0;
	self->is_in = 0;
}

END
{
	printa("%s, bytes%@d\n", @);
}
