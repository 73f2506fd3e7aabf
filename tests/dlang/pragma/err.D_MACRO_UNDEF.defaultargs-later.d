/* An option is in force from where it stands: $1 is read before. */
BEGIN
{
	trace($1);
}

#pragma D option defaultargs
