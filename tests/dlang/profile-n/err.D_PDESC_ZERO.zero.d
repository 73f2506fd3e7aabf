/* 0 is never. */
profile:::profile-0 { trace(1); }
