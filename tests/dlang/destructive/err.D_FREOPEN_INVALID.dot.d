/* A dot is what freopen("") stands for inside. */
BEGIN { freopen("."); }
