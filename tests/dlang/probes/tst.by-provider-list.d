/* Several, with the clause; a comment may stand between.
   @input: -P
*/
 dtrace, /* and again */ dtr* /probename == "END"/ { printf("%s ", probename); }
