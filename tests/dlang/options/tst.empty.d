/* empty: a program without clauses is no error of itself.
   @options: -x empty
   @status: 1 */
/* nothing */
