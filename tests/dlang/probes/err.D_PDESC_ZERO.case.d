/* Names are exact. */
begin { trace(1); }
