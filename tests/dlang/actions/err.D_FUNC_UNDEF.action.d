/* No action has this name. */
BEGIN { tracef("%d", 1); }
