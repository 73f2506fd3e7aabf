/* setopt() may begin it. */
BEGIN { setopt("flowindent"); }
tick-2s { exit(0); }
END { trace(1); }
