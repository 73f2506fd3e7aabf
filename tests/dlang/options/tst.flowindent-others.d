/* Other probes have a bar.
   @options: -F */
BEGIN { trace(1); }
BEGIN { exit(0); }
END { printf("x"); }
