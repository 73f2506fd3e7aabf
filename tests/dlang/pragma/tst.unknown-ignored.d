/* What C's compilers tell each other is nothing to D. */
#pragma pack(1)
#pragma once
#pragma ident "%Z%%M% %I%"
#ident "@(#)name"
#pragma D option quiet
#

BEGIN
{
	printf("ran\n");
	exit(0);
}
