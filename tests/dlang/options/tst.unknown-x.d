/* An unknown option of the command line.
   @options: -x nosuchoption
   @status: 1 */
BEGIN { exit(0); }
