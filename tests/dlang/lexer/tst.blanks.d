/* Tabs, form feeds, newlines and no blanks at all. */
#pragma D option quiet
BEGIN{x=1;y=x+++x;printf("%d %d\n",x,y);z=x-- -x;printf("%d %d\n",x,z);exit(0)}
