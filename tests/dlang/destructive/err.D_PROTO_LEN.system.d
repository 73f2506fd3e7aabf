/* system() wants a command. */
BEGIN { system(); }
