/* A register that no machine has. */
BEGIN
{
	trace(uregs[R_NONESUCH]);
}
