#!/usr/sbin/dtrace -s
#! wherever it is
/* A line of the interpreter is skipped. */
#pragma D option quiet

BEGIN
{
#!another
	printf("ran\n");
	exit(0);
}
