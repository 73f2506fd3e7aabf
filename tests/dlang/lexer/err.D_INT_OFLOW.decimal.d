/* A decimal constant without u is signed: 2^63 fits no type. */
BEGIN
{
	trace(9223372036854775808);
}
