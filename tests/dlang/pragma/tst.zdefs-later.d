/* Clauses are looked at when all is read: an option that is about them counts wherever it stands. */
nosuch:::x
{
	exit(1);
}

BEGIN
{
	exit(0);
}

#pragma D option zdefs
#pragma D option quiet
