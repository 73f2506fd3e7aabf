/* And no more than they need. */
BEGIN { system("echo", 1); }
