/* And variables.
   @options: -x version=1.1 */
BEGIN
{
	trace(ucaller);
}
