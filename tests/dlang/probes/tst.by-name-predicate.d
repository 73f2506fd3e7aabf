/* Or with nothing but a predicate.
   @input: -n
*/
BEGIN, END /probename == "END"/
