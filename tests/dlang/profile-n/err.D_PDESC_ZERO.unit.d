/* With a unit that there is. */
profile:::profile-10parsecs { trace(1); }
