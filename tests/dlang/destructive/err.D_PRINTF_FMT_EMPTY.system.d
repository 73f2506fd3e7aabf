/* An empty command is none. */
BEGIN { system(""); }
