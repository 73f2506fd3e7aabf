inline int X = ;
