/* -lv says how stable they are. @options: -lv */
ERROR { trace(1); }
