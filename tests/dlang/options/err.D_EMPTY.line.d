/* That there is nothing is said with the line where it ends; blank lines count.
   @says: line 5: */


