/* 0 divides nothing. */
BEGIN /1 % 0/ { trace(1); }
