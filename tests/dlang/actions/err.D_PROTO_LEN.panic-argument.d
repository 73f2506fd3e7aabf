/* panic() takes nothing. */
BEGIN { panic(1); }
