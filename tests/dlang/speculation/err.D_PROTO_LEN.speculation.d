/* speculation() takes nothing. */
BEGIN { x = speculation(1); }
