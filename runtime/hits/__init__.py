"""How the hits of each site come to the clauses of its probes.

A hit in Python takes about a microsecond, and most programs need not know of it at once. So each site has a delivery
(`kinst.runtime.trap.delivery`): it is decided once for what is enabled, from what clauses look at and do
(`kinst.runtime.clauses.deliveries`), of all clauses of a probe (`combining`) and of all probes and the displaced
instruction of a site (`deciding`). The engine, the tracer and -x explain read it.

Whatever the deliveries, a program prints what it prints when each hit is dispatched. That is one rule:

    counted, batched as alike    only add to aggregations, whose content does not depend on the order; their clauses
                                 have run before anybody looks at aggregations, and before tracing ends (`fold`)
    batched in order             clauses run for one after the other as they happened, on all CPUs, before any hit is
                                 dispatched, any timer fires, a thread is forgotten, or something is printed (`settle`);
                                 what they do can neither fault nor be seen otherwise
    dispatched                   clauses run now, with what was settled before them

What is recorded is taken in order, and its clauses run or it is kept: nothing is passed over. Before sites, what is
enabled or what records have changes, all of it is settled.
"""
