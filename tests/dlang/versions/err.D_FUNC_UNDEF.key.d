/* And what only keys can be.
   @options: -x version=1.1 */
BEGIN
{
	@[func(caller)] = count();
}
