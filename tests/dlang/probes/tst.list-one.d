/* -l lists what the program describes. @options: -l */
BEGIN { trace(1); }
END { trace(2); }
