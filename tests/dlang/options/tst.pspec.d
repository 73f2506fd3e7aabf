/* pspec: a description needs no clause.
   @options: -x pspec -q */
BEGIN
