/* No probe of dtrace has this name. */
dtrace:::MIDDLE { trace(1); }
