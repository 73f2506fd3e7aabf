/* Without a clause, too.
   @input: -n
*/
BEGIN
