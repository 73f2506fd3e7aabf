inline int MIDDLE = 7;
