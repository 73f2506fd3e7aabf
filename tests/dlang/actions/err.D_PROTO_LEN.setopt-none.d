/* setopt() wants an option. */
BEGIN { setopt(); }
