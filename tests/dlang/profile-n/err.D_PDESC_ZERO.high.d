/* Nothing fires in less than 200 us. */
profile:::profile-100ns { trace(1); }
