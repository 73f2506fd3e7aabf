/* A rate is a number. */
profile:::profile-fast { trace(1); }
